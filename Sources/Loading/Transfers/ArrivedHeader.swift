internal import HTTPTransport
internal import ImageCodec

/// The header of an image whose body is still arriving.
struct ArrivedHeader: Sendable {
  /// The head of the whole response.
  var head: ResponseHead
  var image: ImageHeader
  /// The number of bytes of the body that have arrived.
  var received: Int64
  /// The number of bytes of the whole body, if known.
  var length: Int64?
}

/// Reads the header of an image while its body arrives. Each attempt needs half as many bytes again as the one before,
/// so that all attempts together read each byte a bounded number of times.
struct HeaderInspector: Sendable {
  /// The number of bytes at which the next attempt is worthwhile.
  private var threshold = 1
  /// Whether the header cannot be read.
  private var isInvalid = false

  /// The header, once the bytes suffice.
  mutating func inspect(_ bytes: [UInt8], ofLength length: Int64?, format: ImageFormat) -> ImageHeader? {
    guard !isInvalid, bytes.count >= threshold else { return nil }
    switch HeaderPrefix.read(bytes, ofLength: length.map(Int.init), format: format) {
    case .complete(let header): return header
    case .invalid: isInvalid = true
    case .needsMore(let count): threshold = max(count, bytes.count + bytes.count / 2)
    }
    return nil
  }
}

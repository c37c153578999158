internal import CZlib

/// The number of bytes to which the image data of a PNG inflates. The bytes are not kept.
///
/// Damaged data counts up to the damage, which libpng will report.
struct PNGInflation {
  private var chunks: PNGChunks
  private let file: UnsafeRawBufferPointer
  private var limit = 0
  private var length = 0
  /// The bytes of the zlib header that are still to be skipped; inflateBack needs raw deflate data.
  private var headerLeft = 2

  /// The maximum expansion of deflate: the bytes that one input byte can produce.
  static let maxExpansion = 1032

  init(_ file: UnsafeRawBufferPointer) {
    self.file = file
    chunks = PNGChunks(file)
  }

  /// Stops as soon as the limit is exceeded.
  mutating func exceeds(_ limit: Int) -> Bool {
    self.limit = limit
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32768) { window in
      var stream = z_stream()
      guard czlib_inflate_back_init(&stream, window.baseAddress) == Z_OK else { return }
      defer { inflateBackEnd(&stream) }
      withUnsafeMutablePointer(to: &self) { inflation in
        _ = inflateBack(
          &stream,
          { context, input in PNGInflation.at(context).pointee.nextInput(into: input) }, inflation,
          { context, _, count in PNGInflation.at(context).pointee.add(Int(count)) }, inflation)
      }
    }
    return length > limit
  }

  private static func at(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<PNGInflation> {
    context.unsafelyUnwrapped.assumingMemoryBound(to: PNGInflation.self)
  }

  /// Passes the data of the next chunk that is not empty; returns 0 at the end.
  private mutating func nextInput(into input: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) -> UInt32 {
    while let chunk = chunks.next() {
      guard chunk.name == PNGChunks.imageData else { continue }
      let header = min(headerLeft, chunk.content.count)
      headerLeft -= header
      let data = UnsafeRawBufferPointer(rebasing: file[chunk.content.dropFirst(header)])
      guard !data.isEmpty else { continue }
      input?.pointee = data.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return UInt32(data.count)
    }
    return 0
  }

  /// Returns a value other than 0 when the limit is exceeded.
  private mutating func add(_ count: Int) -> Int32 {
    length += count
    return length > limit ? 1 : 0
  }
}

package import ImageCodec
internal import Platform

/// The message of libvips or libjpeg about a failure.
package struct LibraryError: Error {
  package let message: String

  package init(_ message: some StringProtocol) { self.message = CodecReply.readable(message) }

  /// The libraries distinguish kinds of failures only by their texts.
  package var asDecodeError: DecodeError {
    // An unsupported marker is damage and not a format. Samples out of range have a type that libvips does not support.
    if Self.wordsOfKinds.contains(where: { message.has($0) }), !message.has("marker") {
      return .unsupportedFormat("this kind of image cannot be decoded (\(message))")
    }
    if message.has("samples out of range") || message.has("not a whole number of bytes") {
      return .unsupportedFormat("this kind of image cannot be decoded (\(message))")
    }
    if message.has("creating thread") { return .io("the system permits no more threads (\(message))") }
    if Self.wordsOfMemory.contains(where: { message.has($0) }) { return Self.memory }
    return .corrupt("the image is damaged (\(message))")
  }

  package static let memory = DecodeError.outOfMemory("the image needs more memory than a decoder may use")

  /// libtiff has the last ones for a compression that it does not know.
  private static let wordsOfKinds = ["nsupported", "not supported", "not implemented"]
  private static let wordsOfMemory = [
    "out of memory", "Out of memory", "nsufficient memory", "to allocate", "emory allocation",
  ]
}

extension DecodeError {
  /// The answer to an error of a decode.
  package init(_ error: any Error) {
    switch error {
    case let error as DecodeError: self = error
    case let error as LibraryError: self = error.asDecodeError
    default: self = .io("\(error)")
    }
  }
}

/// Makes a rendition of a set. An error that is the image's own, or the system's, names no rendition.
///
/// - Parameter count: the number of renditions. A later index, as that of the placeholder, is not named.
package func makeRendition<Result>(_ index: Int, of count: Int, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch {
    let error = DecodeError(error)
    switch error {
    case .cropOutside, .tooLarge, .tooManyPixels, .unsupportedFormat:
      throw index < count ? DecodeError.ofRendition(index, error) : error
    default: throw error
    }
  }
}

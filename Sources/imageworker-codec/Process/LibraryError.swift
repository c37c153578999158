internal import CVips
internal import ImageCodec

/// What libvips or libjpeg said when it failed.
struct LibraryError: Error {
  let message: String

  init(_ message: some StringProtocol) { self.message = CodecReply.readable(message) }

  /// Takes what libvips has to say about its last failures.
  init() {
    let lines = String(cString: vips_error_buffer()).split(separator: "\n")
    vips_error_clear()
    self.init(lines.first ?? "the image cannot be decoded")
  }

  /// The libraries tell kinds of failures by their texts only.
  var asDecodeError: DecodeError {
    // A marker that does not exist is no format. Samples out of range are of a type that libvips does not have.
    if message.contains("nsupported") || message.contains("not supported"), !message.contains("marker") {
      return .unsupportedFormat(message)
    }
    if message.contains("samples out of range") || message.contains("not a whole number of bytes") {
      return .unsupportedFormat(message)
    }
    if Self.wordsOfMemory.contains(where: message.contains) {
      return Self.memory
    }
    return .corrupt(message)
  }

  static let memory = DecodeError.outOfMemory("the image needs more memory than a decoder may use")

  private static let wordsOfMemory = [
    "out of memory", "Out of memory", "nsufficient memory", "to allocate",
  ]
}

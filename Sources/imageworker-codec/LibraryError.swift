internal import CVips
internal import ImageCodec

/// What libvips said when it failed.
struct LibraryError: Error {
  let message: String

  /// Takes what the library has to say about its last failures.
  init() {
    let lines = String(cString: vips_error_buffer()).split(separator: "\n")
    vips_error_clear()
    message = CodecReply.readable(lines.first ?? "the image cannot be decoded")
  }

  /// The library tells kinds of failures by their texts only.
  var asDecodeError: DecodeError {
    if message.contains("nsupported") { return .unsupportedFormat(message) }
    if message.contains("out of memory") || message.contains("Insufficient memory") {
      return .tooManyPixels("a decoder may not have as much memory as this takes")
    }
    return .corrupt(message)
  }
}

/// The reason that an image was not decoded. The texts may be shown in an error message.
public enum DecodeError: Error, Sendable, Hashable {
  case corrupt(String)
  case unsupportedFormat(String)
  case tooManyPixels(String)
  /// The image needs more memory than a decoder process may have, even in a fresh process.
  case outOfMemory(String)
  /// The transform's crop is wholly outside the image.
  case cropOutside(String)
  /// The decoder process ended during the decode, and so did the process of the second attempt.
  case crashed
  case timedOut
  case cancelled
  /// A file could not be read or written.
  case io(String)
  /// No decoder process can be started.
  case unavailable(String)
}

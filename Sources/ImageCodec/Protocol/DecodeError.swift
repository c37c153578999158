/// Why an image was not decoded. The texts are fit for an error message.
public enum DecodeError: Error, Sendable, Hashable {
  case corrupt(String)
  case unsupportedFormat(String)
  case tooManyPixels(String)
  /// The decoder process may not have as much memory as this takes, though it had seen no image before.
  case outOfMemory(String)
  /// The transform's crop lies wholly outside of the image.
  case cropOutside(String)
  /// The decoder process ended in the middle of it, and so did another one that tried again.
  case crashed
  case timedOut
  case cancelled
  /// A file could not be read or written.
  case io(String)
  /// There is no decoder.
  case unavailable(String)
}

/// A problem of a cache directory that does not end the worker.
public enum StoreWarning: Sendable, Equatable {
  /// The index was damaged and has been removed.
  case damagedIndex(path: String)
  /// The directory is not used, or not written, for a while.
  case unusable(path: String, reason: String)

  /// A text for people.
  public var message: String {
    switch self {
    case .damagedIndex(let path): "the index of the cache \(path) was damaged; the cache starts empty"
    case .unusable(let path, let reason): "continuing without the cache \(path): \(reason)"
    }
  }
}

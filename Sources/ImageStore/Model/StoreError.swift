/// An error of the store: a kind for programs and a message for people.
public struct StoreError: Error, Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    /// The file system has no space left (ENOSPC, EDQUOT, SQLITE_FULL).
    case diskFull
    /// The process or the system is out of file descriptors (EMFILE, ENFILE), which is temporary.
    case noDescriptor
    /// Reading or writing failed.
    case io
    /// A stored file is missing or has another size or digest; its response has been dropped.
    case damaged
    /// The limit does not allow the body: everything that could be evicted was delivered in the last 60 s, is being
    /// read, or the body is larger than a tenth of the limit.
    case overLimit
    /// A clear that matches the response was made since the transfer began.
    case cleared
    /// The original of the variant has been replaced.
    case outdated
    /// A file of the host is not where it must be.
    case outside
    /// A file of the host changed while it was read.
    case changed
    /// The directory cannot be used.
    case unusable(path: String)
  }

  public var kind: Kind
  public var message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  init(_ error: FileError) {
    self.init(error.isOutOfSpace ? .diskFull : error.isOutOfDescriptors ? .noDescriptor : .io, error.message)
  }

  /// The result of work with files, whose failed system call is thrown as an error of the store.
  static func mapping<Result>(_ work: () throws(FileError) -> Result) throws(StoreError) -> Result {
    do throws(FileError) {
      return try work()
    } catch {
      throw StoreError(error)
    }
  }

  init(_ error: SQLiteError) {
    self.init(error.isOutOfSpace ? .diskFull : .io, "the cache's index: \(error.message)")
  }
}

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

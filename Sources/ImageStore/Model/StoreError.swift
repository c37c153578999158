/// What went wrong in the store, in words for people and a kind for programs.
public struct StoreError: Error, Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    /// The file system has no space left (ENOSPC, EDQUOT, SQLITE_FULL).
    case diskFull
    /// The process or the system has no file descriptor left (EMFILE, ENFILE). That passes.
    case noDescriptor
    /// Reading or writing failed.
    case io
    /// A stored file is missing, of another size or of another digest; it has been dropped.
    case damaged
    /// The limit leaves no room: all that could be evicted was delivered in the last 60 s or is being worked on, or the
    /// body is larger than a tenth of it.
    case noRoom
    /// The cache has been cleared of it since its transfer began.
    case cleared
    /// A variant of an original that has been replaced meanwhile.
    case outdated
    /// The directory cannot be used at all.
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

  init(_ error: SQLiteError) {
    self.init(error.isOutOfSpace ? .diskFull : .io, "the cache's index: \(error.message)")
  }
}

internal import CSQLite
internal import Platform

/// An error of SQLite, with its extended result code.
struct SQLiteError: Error {
  var code: Int32
  var message: String

  /// The SQLite result code for an `errno`; EILSEQ stands for a damaged file.
  static func code(forErrno errno: Int32) -> Int32 {
    switch errno {
    case ENOSPC, EDQUOT: SQLITE_FULL
    case EROFS, EACCES, EPERM: SQLITE_READONLY
    case EILSEQ: SQLITE_CORRUPT
    default: SQLITE_IOERR
    }
  }

  static let damage = SQLiteError(code: SQLITE_CORRUPT, message: "the database disk image is malformed")

  private var primary: Int32 { code & 0xff }
  /// Whether the file is not a database, is corrupt, or lacks tables or columns of its version.
  var isDamage: Bool {
    switch primary {
    case SQLITE_CORRUPT, SQLITE_NOTADB: true
    case SQLITE_ERROR: message.hasPrefix("no such ") || message.has(" has no column ")
    default: false
    }
  }
  var isOutOfSpace: Bool { primary == SQLITE_FULL }
  var isBusy: Bool { primary == SQLITE_BUSY }
}

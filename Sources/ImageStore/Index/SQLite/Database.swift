internal import CSQLite
internal import Platform
internal import Text

/// A connection to an SQLite database, for one thread.
final class Database {
  private let handle: OpaquePointer
  private let fault: (() -> Int32?)?

  enum Mode {
    case readWrite
    /// Reads while others may write.
    case readOnly
    /// Reads a file that nobody writes, without creating or locking files.
    case immutable
  }

  /// SQLite's `MAX_PATHNAME` (os_unix.c): a path of this many bytes cannot be opened, side files included.
  static let maxPathLength = 512

  /// Disables memory statistics, which are unused and take a lock for each allocation. Has no effect if SQLite was used
  /// before.
  private static let omittedStatistics = csqlite_omit_memory_statistics()

  /// - Parameter fault: called before each step; a returned code makes the step fail.
  init(path: String, mode: Mode, fault: (() -> Int32?)? = nil) throws(SQLiteError) {
    self.fault = fault
    _ = Self.omittedStatistics
    var handle: OpaquePointer?
    let flags = mode == .readWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
    // The URI has an empty authority, so that a path that begins with two slashes is not parsed as one.
    let uri = "file://" + Self.percentEncoded(path) + (mode == .immutable ? "?immutable=1" : "")
    let code = sqlite3_open_v2(
      uri, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, nil)
    guard code == SQLITE_OK, let handle else {
      let message = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
      sqlite3_close_v2(handle)
      throw SQLiteError(code: code, message: message)
    }
    self.handle = handle
    // SQLite's own busy handler soon sleeps for 100 ms at a time, and misses the moments in which a worker that stores
    // images continuously releases the lock. This one retries every 0.5 ms for about five seconds.
    sqlite3_busy_handler(handle, { _, attempts in Database.waits(after: attempts) ? 1 : 0 }, nil)
  }

  deinit { sqlite3_close_v2(handle) }

  /// The number of rows that the last statement changed.
  var changes: Int { Int(sqlite3_changes(handle)) }

  /// Whether a transaction is open; SQLite ends one by itself after some failures.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs statements and ignores their results.
  func execute(_ sql: String) throws(SQLiteError) {
    if let code = fault?() { throw SQLiteError(code: code, message: String(cString: sqlite3_errstr(code))) }
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    if code != SQLITE_OK { throw error(code) }
  }

  /// Runs a statement that reads before it writes, and waits where SQLite does not: it calls the busy handler only for
  /// the first lock of a transaction, since two readers could wait for each other.
  func executeUpgrading(_ sql: String) throws(SQLiteError) {
    var attempts: Int32 = 0
    while true {
      do throws(SQLiteError) {
        return try execute(sql)
      } catch {
        guard error.isBusy && Self.waits(after: attempts) else { throw error }
        attempts += 1
      }
    }
  }

  /// Sleeps before the next attempt. Returns false after the last attempt.
  private static func waits(after attempts: Int32) -> Bool {
    guard attempts < 10_000 else { return false }
    usleep(500)
    return true
  }

  /// Prepares a statement for repeated use.
  func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw error(code) }
    return Statement(statement, of: self)
  }

  /// The value of a numeric pragma.
  func number(_ pragma: String) throws(SQLiteError) -> Int { try prepare(pragma).first { $0.int(0) } ?? 0 }

  func step(_ statement: OpaquePointer) throws(SQLiteError) -> Bool {
    if let code = fault?() { throw SQLiteError(code: code, message: String(cString: sqlite3_errstr(code))) }
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw error(code)
    }
  }

  private func error(_ code: Int32) -> SQLiteError {
    SQLiteError(code: code, message: String(cString: sqlite3_errmsg(handle)))
  }

  private static func percentEncoded(_ path: String) -> String {
    var result = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"), 128...:
        result += "%" + hexadecimal(UInt64(byte), digits: 2)
      default:
        result.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    return result
  }
}

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

internal import CSQLite

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// An error of SQLite, with its extended result code.
struct SQLiteError: Error {
  var code: Int32
  var message: String

  /// What SQLite says when the system says `errno`; EILSEQ stands for a damaged file.
  static func code(forErrno errno: Int32) -> Int32 {
    switch errno {
    case ENOSPC, EDQUOT: SQLITE_FULL
    case EROFS, EACCES, EPERM: SQLITE_READONLY
    case EILSEQ: SQLITE_CORRUPT
    default: SQLITE_IOERR
    }
  }

  private var primary: Int32 { code & 0xff }
  /// The file is no database, or a broken one, or lacks what its version has.
  var isDamage: Bool {
    switch primary {
    case SQLITE_CORRUPT, SQLITE_NOTADB: true
    case SQLITE_ERROR: message.hasPrefix("no such ") || message.contains(" has no column ")
    default: false
    }
  }
  var isOutOfSpace: Bool { primary == SQLITE_FULL }
  var isBusy: Bool { primary == SQLITE_BUSY }
}

/// A connection to an SQLite database, for one thread.
final class Database {
  private let handle: OpaquePointer
  private let fault: (() -> Int32?)?

  enum Mode {
    case readWrite
    /// Reads while others may write.
    case readOnly
    /// Reads what nobody writes, without creating or locking anything.
    case immutable
  }

  /// SQLite's `MAX_PATHNAME` (os_unix.c): no path of this many bytes can be opened, side files included.
  static let longestPath = 512

  /// Nobody asks how much memory SQLite uses, and counting it takes a lock for each allocation. In vain when SQLite was
  /// in use before.
  private static let omittedStatistics = csqlite_omit_memory_statistics()

  /// - Parameter fault: asked before each step; a returned code makes it fail.
  init(path: String, mode: Mode, fault: (() -> Int32?)? = nil) throws(SQLiteError) {
    self.fault = fault
    _ = Self.omittedStatistics
    var handle: OpaquePointer?
    let flags =
      mode == .readWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY
    // The authority is empty, so that none is read into a path of two slashes.
    let name = "file://" + Self.percentEncoded(path) + (mode == .immutable ? "?immutable=1" : "")
    let code = sqlite3_open_v2(
      name, &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, nil)
    guard code == SQLITE_OK, let handle else {
      let message = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
      sqlite3_close_v2(handle)
      throw SQLiteError(code: code, message: message)
    }
    self.handle = handle
    // SQLite's own handler soon sleeps for a tenth of a second at a time, and never meets the moments in which a worker
    // that stores image after image lets go of the lock. This one looks twice in a millisecond, for about five seconds.
    sqlite3_busy_handler(handle, { _, attempts in Database.waits(after: attempts) ? 1 : 0 }, nil)
  }

  deinit { sqlite3_close_v2(handle) }

  /// Rows that the last statement changed.
  var changes: Int { Int(sqlite3_changes(handle)) }

  /// Whether a transaction is open; SQLite ends one by itself after some failures.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs statements that return nothing of interest.
  func execute(_ sql: String) throws(SQLiteError) {
    if let code = fault?() { throw SQLiteError(code: code, message: String(cString: sqlite3_errstr(code))) }
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    if code != SQLITE_OK { throw error(code) }
  }

  /// Runs a statement that first reads and then writes, and waits where SQLite does not: it asks the busy handler only
  /// for the first lock of a transaction, lest two that read wait for each other.
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

  /// Sleeps, unless that was done often enough.
  private static func waits(after attempts: Int32) -> Bool {
    guard attempts < 10_000 else { return false }
    usleep(500)
    return true
  }

  /// Prepares a statement that is kept for long.
  func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw error(code) }
    return Statement(statement, of: self)
  }

  /// What a pragma of one number says.
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

internal import CSQLite
internal import Text

/// A value that can be bound to a parameter of a statement. Parameters count from 1.
protocol SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32)
}

extension Int64: SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32) { sqlite3_bind_int64(statement, parameter, self) }
}

extension Int: SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32) { Int64(self).bind(to: statement, parameter) }
}

extension String: SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32) {
    var value = self
    value.withUTF8 { text in
      text.withMemoryRebound(to: CChar.self) { text in
        _ = sqlite3_bind_text(
          statement, parameter, text.baseAddress ?? emptyText, Int32(clamping: text.count), copied)
      }
    }
  }
}

/// FNV-1a of the text's bytes, as the index stores it.
func fnv1a(_ text: String) -> Int64 { Int64(bitPattern: FNV1a.hash(text.utf8)) }

/// A blob.
extension [UInt8]: SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32) {
    withUnsafeBytes { bytes in
      _ = sqlite3_bind_blob(statement, parameter, bytes.baseAddress, Int32(clamping: bytes.count), copied)
    }
  }
}

extension Optional: SQLiteValue where Wrapped: SQLiteValue {
  func bind(to statement: OpaquePointer, _ parameter: Int32) {
    if let self { self.bind(to: statement, parameter) } else { sqlite3_bind_null(statement, parameter) }
  }
}

/// SQLITE_TRANSIENT: SQLite copies the value before the call returns.
private var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

// Unsafe: one byte that is never written. An empty text needs an address, or it is bound as NULL.
nonisolated(unsafe) private let emptyText: UnsafePointer<CChar> = {
  let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
  byte.initialize(to: 0)
  return UnsafePointer(byte)
}()

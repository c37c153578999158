internal import CSystem
internal import Platform

/// Files as shared memory. All calls of `mappings.h` are in this file.
extension FileSystem {
  private static let survival: Void = csystem_survive_truncation()

  /// Maps the file's first bytes as shared memory until `unmap`. The file must have that length.
  ///
  /// If the file is truncated later, the memory is replaced by private zeros at the first access beyond the new end.
  ///
  /// - Parameter byteCount: a multiple of 4096 below 16 MB.
  func map(_ file: Int32, _ path: String, byteCount: Int) throws(FileError) -> UnsafeMutableRawPointer {
    if let code = fault?(.open) { throw FileError(operation: .open, path: path, code: code) }
    Self.survival
    guard let memory = csystem_map(file, UInt(byteCount)) else {
      throw FileError(operation: .open, path: path, code: errno)
    }
    return memory
  }

  static func unmap(_ memory: UnsafeMutableRawPointer, byteCount: Int) { csystem_unmap(memory, UInt(byteCount)) }
}

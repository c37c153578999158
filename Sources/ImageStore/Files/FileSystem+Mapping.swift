internal import CSystem

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Files as shared memory. All calls of `mappings.h` are here.
extension FileSystem {
  private static let survival: Void = csystem_survive_truncation()

  /// The file's first bytes as memory that all who map it share, until `unmap`. It has to be that long.
  ///
  /// If the file is cut short later, the memory becomes zeros that are this process's own, as soon as a byte is touched
  /// that is no longer in the file.
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

internal import CSystem
internal import Platform
internal import Threads

/// Reads, writes and lists completely, with retries after partial results.
extension FileSystem {
  /// Writes all of `bytes` at the file's current offset.
  func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, _ path: String) throws(FileError) {
    var done = 0
    repeat {
      if let code = fault?(.write) { throw FileError(operation: .write, path: path, code: code) }
      let count = retryingOnInterrupt { systemWrite(file, bytes, from: done) }
      if count < 0 { throw FileError(operation: .write, path: path, code: errno) }
      if count == 0 && done < bytes.count { throw FileError(operation: .write, path: path, code: ENOSPC) }
      done += count
    } while done < bytes.count
  }

  func write(_ bytes: [UInt8], to file: Int32, _ path: String) throws(FileError) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(FileError) in try write(bytes, to: file, path) }
    }
    try result.get()
  }

  /// Reads up to `buffer.count` bytes; fewer only at the end of the file, and if the bytes are no longer wanted.
  ///
  /// - Parameter isWanted: asked before each piece.
  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64 = 0, from file: Int32, _ path: String,
    while isWanted: () -> Bool = { true }
  ) throws(FileError) -> Int {
    var done = 0
    while done < buffer.count, isWanted() {
      if let code = fault?(.read) { throw FileError(operation: .read, path: path, code: code) }
      let count = retryingOnInterrupt {
        pread(file, buffer.baseAddress! + done, min(buffer.count - done, 1 << 20), off_t(offset) + off_t(done))
      }
      if count < 0 { throw FileError(operation: .read, path: path, code: errno) }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// Passes the remainder of a file from `offset` to `body` in pieces of at most 256 kB. Wakes the threads that have
  /// pending work first, since reading may take long.
  func forEachPiece(
    of file: Int32, _ path: String, from offset: Int64 = 0,
    _ body: (UnsafeRawBufferPointer) throws(FileError) -> Void
  ) throws(FileError) {
    WakeupCoalescer.release()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    var offset = offset
    while true {
      let count = try read(into: buffer, at: offset, from: file, path)
      if count == 0 { return }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += Int64(count)
    }
  }

  /// The names in a directory except `.` and `..`, unordered.
  func list(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) -> [String] {
    if let code = fault?(.list) { throw FileError(operation: .list, path: path, code: code) }
    let descriptor = try openDirectory(path, in: directory)
    guard let stream = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      throw FileError(operation: .list, path: path, code: code)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }
}

private func systemWrite(_ file: Int32, _ bytes: UnsafeRawBufferPointer, from offset: Int) -> Int {
  guard let base = bytes.baseAddress else { return 0 }
  return write(file, base + offset, bytes.count - offset)
}

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

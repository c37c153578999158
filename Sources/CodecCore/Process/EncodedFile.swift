package import ImageCodec
internal import Platform

/// A file in memory that a library allocated with `malloc`, or with `g_malloc`, which is the same since GLib 2.46.
package final class EncodedFile {
  package let bytes: UnsafeRawBufferPointer

  package init(bytes: UnsafeMutableRawPointer, count: Int) {
    self.bytes = UnsafeRawBufferPointer(start: bytes, count: count)
  }

  /// A copy of a file with other bytes in a range, as many as before.
  package convenience init(
    copying file: UnsafeRawBufferPointer, with replacement: [UInt8], in range: Range<Int>
  ) throws(DecodeError) {
    guard let copy = malloc(file.count) else { throw LibraryError.memory }
    let bytes = UnsafeMutableRawBufferPointer(start: copy, count: file.count)
    bytes.copyMemory(from: file)
    UnsafeMutableRawBufferPointer(rebasing: bytes[range]).copyBytes(from: replacement)
    self.init(bytes: copy, count: file.count)
  }

  convenience init(copying file: [UInt8]) throws(DecodeError) {
    guard let copy = malloc(max(1, file.count)) else { throw LibraryError.memory }
    UnsafeMutableRawBufferPointer(start: copy, count: file.count).copyBytes(from: file)
    self.init(bytes: copy, count: file.count)
  }

  deinit { free(UnsafeMutableRawPointer(mutating: bytes.baseAddress)) }
}

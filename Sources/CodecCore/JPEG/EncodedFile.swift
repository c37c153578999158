internal import Platform

/// A file in memory that a library allocated with `malloc`, or with `g_malloc`, which is the same since GLib 2.46.
package final class EncodedFile {
  package let bytes: UnsafeRawBufferPointer

  package init(bytes: UnsafeMutableRawPointer, count: Int) {
    self.bytes = UnsafeRawBufferPointer(start: bytes, count: count)
  }

  deinit { free(UnsafeMutableRawPointer(mutating: bytes.baseAddress)) }
}

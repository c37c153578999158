internal import Platform

/// Memory for pixels, uninitialised.
package final class PixelMemory {
  package let bytes: UnsafeMutableRawBufferPointer

  package init(_ count: Int) throws(LibraryError) {
    var memory: UnsafeMutableRawPointer?
    // Pages of 2 MB, if the system has them, are cleared in a third of the time of small ones.
    if count >= 2 * Self.hugePage {
      posix_memalign(&memory, Self.hugePage, count)
      madvise(memory, count, Int32(MADV_HUGEPAGE))
    } else {
      memory = malloc(max(1, count))
    }
    guard let memory else { throw LibraryError("out of memory") }
    bytes = UnsafeMutableRawBufferPointer(start: memory, count: count)
  }

  private static let hugePage = 2 << 20

  deinit { free(bytes.baseAddress) }

  package var samples: UnsafeMutablePointer<UInt8> { bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

  func clear() { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
}

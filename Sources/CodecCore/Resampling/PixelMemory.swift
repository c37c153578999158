internal import Platform

/// Memory for pixels, uninitialised.
package final class PixelMemory {
  package let bytes: UnsafeMutableRawBufferPointer

  package init(_ count: Int) throws(LibraryError) {
    guard let memory = malloc(max(1, count)) else { throw LibraryError("out of memory") }
    bytes = UnsafeMutableRawBufferPointer(start: memory, count: count)
  }

  deinit { free(bytes.baseAddress) }

  package var samples: UnsafeMutablePointer<UInt8> { bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

  func clear() { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
}

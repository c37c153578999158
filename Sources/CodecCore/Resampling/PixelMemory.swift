internal import Platform

/// Memory for pixels, uninitialised.
final class PixelMemory {
  let bytes: UnsafeMutableRawBufferPointer

  init(_ count: Int) throws(LibraryError) {
    guard let memory = malloc(max(1, count)) else { throw LibraryError("out of memory") }
    bytes = UnsafeMutableRawBufferPointer(start: memory, count: count)
  }

  deinit { free(bytes.baseAddress) }

  var samples: UnsafeMutablePointer<UInt8> { bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

  func clear() { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
}

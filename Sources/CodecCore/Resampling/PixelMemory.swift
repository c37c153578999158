internal import Platform

/// Memory for pixels, uninitialised.
package final class PixelMemory {
  package let bytes: UnsafeMutableRawBufferPointer

  package init(_ count: Int) throws(LibraryError) {
    var memory: UnsafeMutableRawPointer?
    // From two of these pages on, because only a part of the last one may be used.
    if count >= 2 * Self.largePage {
      posix_memalign(&memory, Self.largePage, count)
      useLargePages(memory, count)
    } else {
      memory = malloc(max(1, count))
    }
    guard let memory else { throw LibraryError("out of memory") }
    bytes = UnsafeMutableRawBufferPointer(start: memory, count: count)
  }

  /// Holds rows, `count` bytes in all, that `body` passes from the top.
  package convenience init(_ count: Int, rows body: (Resampler.Taker) throws -> Void) throws {
    try self.init(count)
    var end = bytes.baseAddress!
    try body { row in
      end.copyMemory(from: row.baseAddress!, byteCount: row.count)
      end += row.count
    }
  }

  private static let largePage = 2 << 20

  deinit { free(bytes.baseAddress) }

  package var samples: UnsafeMutablePointer<UInt8> { bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

  func clear() { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
}

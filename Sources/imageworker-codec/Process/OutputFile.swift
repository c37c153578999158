internal import ImageCodec
internal import Platform

/// The output file: a descriptor from the worker, closed with this object.
final class OutputFile {
  private let descriptor: Int32

  init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  func write(_ bytes: UnsafeRawBufferPointer) throws(DecodeError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = UnsafeRawBufferPointer(rebasing: rest)
      let written = writeDescriptor(descriptor, piece.baseAddress, piece.count)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw .io("the decoded image cannot be written: \(String(cString: strerror(errno)))") }
      rest = rest.dropFirst(written)
    }
  }
}

package import ImageCodec
internal import Platform

/// The bytes of an image file, memory-mapped.
package final class InputFile {
  package let bytes: UnsafeRawBufferPointer
  /// The owner of bytes that are not mapped.
  private let file: EncodedFile?

  /// An image of this program's own.
  init(_ file: EncodedFile) { (bytes, self.file) = (file.bytes, file) }

  /// Nil if the file cannot be mapped. The descriptor is not needed afterwards.
  init?(mapping descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size > 0,
      let address = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED
    else { return nil }
    bytes = UnsafeRawBufferPointer(start: address, count: Int(status.st_size))
    file = nil
  }

  deinit { if file == nil { munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) } }
}

/// The output file: a descriptor from the worker, closed with this object.
package final class OutputFile {
  private let descriptor: Int32
  /// Bytes that are not written yet.
  private let held = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
  private var heldCount = 0

  init(descriptor: Int32) { self.descriptor = descriptor }

  deinit {
    held.deallocate()
    close(descriptor)
  }

  /// Writes small pieces, several at a time. The last are written by `flush`.
  func add(_ bytes: UnsafeRawBufferPointer) throws(DecodeError) {
    if heldCount + bytes.count > held.count { try flush() }
    if bytes.count > held.count { return try write(bytes) }
    UnsafeMutableRawBufferPointer(rebasing: held[heldCount...]).copyMemory(from: bytes)
    heldCount += bytes.count
  }

  func flush() throws(DecodeError) {
    try write(UnsafeRawBufferPointer(rebasing: held[..<heldCount]))
    heldCount = 0
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(DecodeError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = UnsafeRawBufferPointer(rebasing: rest)
      let written = retryingOnInterrupt { writeDescriptor(descriptor, piece.baseAddress, piece.count) }
      guard written > 0 else { throw .unwritable(errno) }
      rest = rest.dropFirst(written)
    }
  }
}

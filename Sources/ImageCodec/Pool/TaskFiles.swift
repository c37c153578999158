internal import CSystem
internal import Platform

/// The files of a running decode. The output file is removed unless it is kept.
final class TaskFiles {
  /// The input's descriptor, until the decoder has its own.
  private var input: Int32?
  private var output: Int32?
  /// The output's path, while the file exists and is not kept.
  private var outputPath: String?

  init(_ task: DecodeTask) throws(DecodeError) {
    input = try Self.open(task.source)
    guard let path = task.outputPath else { return }
    // Pixels may overwrite those of an earlier image.
    let exclusively = if case .pixels = task.output { Int32(0) } else { O_EXCL }
    let file = openFile(path, O_RDWR | O_CREAT | exclusively | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .unwritable(errno) }
    (output, outputPath) = (file, path)
  }

  deinit {
    closeInput()
    discardOutput()
  }

  /// The descriptors to send to the decoder.
  var descriptors: [Int32] { [input, output].compactMap { $0 } }

  func closeInput() {
    if let input { close(input) }
    input = nil
  }

  private func closeOutput() {
    if let output { close(output) }
    output = nil
  }

  /// Removes the output file, even if the decoder may still write to it.
  func discardOutput() {
    if let outputPath { unlink(outputPath) }
    outputPath = nil
    closeOutput()
  }

  /// Accepts the output file if it matches the decoder's reply, and a reply without a file if it has what was asked
  /// for: a load would ask for missing facts again without end.
  func accept(_ decoded: Decoded, for output: DecodeTask.Output) -> Bool {
    guard let file = self.output else {
      switch output {
      case .facts(let wanted): return decoded.bytes == 0 && wanted.isSubset(of: decoded.facts.known)
      case .placeholder: return decoded.bytes == 0 && decoded.placeholder != nil
      case .renditions(let set, _):
        return decoded.bytes == 0 && decoded.renditions.isEmpty && set.facts.isSubset(of: decoded.facts.known)
      case .check, .encoded, .pixels, .preview: return decoded.bytes == 0
      }
    }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_size >= decoded.bytes, decoded.bytes > 0 else { return false }
    switch output {
    case .pixels:
      let area = decoded.width.multipliedReportingOverflow(by: decoded.height)
      let bytes = area.partialValue.multipliedReportingOverflow(by: decoded.channels)
      guard !area.overflow, !bytes.overflow, bytes.partialValue == decoded.bytes else { return false }
    case .renditions(let set, _):
      guard status.st_size == decoded.bytes, decoded.renditions.count == set.renditions.count,
        decoded.renditions.reduce(0, { $0 + $1.bytes }) == decoded.bytes,
        zip(decoded.renditions, set.renditions).allSatisfy({ $0.bytes <= $1.maxBytes ?? .max }),
        set.facts.isSubset(of: decoded.facts.known)
      else { return false }
    default:
      guard status.st_size == decoded.bytes, decoded.format != nil, decoded.width > 0, decoded.height > 0,
        decoded.frames > 0
      else { return false }
    }
    outputPath = nil
    closeOutput()
    return true
  }

  private static func open(_ source: DecodeTask.Source) throws(DecodeError) -> Int32 {
    let file: Int32
    switch source {
    case .file(let path): file = openFile(path, O_RDONLY | O_CLOEXEC)
    case .bytes(let bytes): file = memoryFile(bytes)
    }
    if file < 0 { throw .io("the image cannot be read: \(String(cString: strerror(errno)))") }
    return file
  }

  /// Negative, with `errno` set, if there is not enough memory.
  private static func memoryFile(_ bytes: [UInt8]) -> Int32 {
    let file = csystem_memory_file()
    guard file >= 0 else { return file }
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { bytes in
        retryingOnInterrupt { write(file, bytes.baseAddress, bytes.count) }
      }
      guard written > 0 else {
        let reason = errno
        close(file)
        errno = reason
        return -1
      }
      rest = rest.dropFirst(written)
    }
    csystem_seal(file)
    return file
  }
}

/// A separate function, because `open` inside the type means its own method.
private func openFile(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 { open(path, flags, mode) }

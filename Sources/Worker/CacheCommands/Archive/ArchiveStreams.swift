internal import ImageStore
internal import LineRPC
internal import Platform

/// The input of an import: a file, or standard input.
final class ArchiveInput {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var start = 0
  private static let bufferSize = 1 << 18

  /// - Parameter path: nil for standard input.
  init(_ path: String?) throws(CommandError) {
    guard let path else {
      descriptor = STDIN_FILENO
      return
    }
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CommandError(
        status: EX_NOINPUT, message: "\(path.quotable) cannot be opened: \(String(cString: strerror(errno)))")
    }
  }

  deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

  /// Reads `count` bytes; fewer only at the end of the input.
  func read(_ count: Int) throws(ArchiveError) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    while result.count < count {
      if start == buffer.count, try !fill() { break }
      let end = min(buffer.count, start + count - result.count)
      result += buffer[start..<end]
      start = end
    }
    return result
  }

  /// Returns false at the end of the input.
  private func fill() throws(ArchiveError) -> Bool {
    var code: Int32 = 0
    buffer = [UInt8](unsafeUninitializedCapacity: Self.bufferSize) { buffer, count in
      repeat {
        count = max(0, systemRead(descriptor, UnsafeMutableRawBufferPointer(buffer), &code))
      } while code == EINTR
    }
    start = 0
    guard code == 0 else { throw ArchiveError("the archive cannot be read: \(String(cString: strerror(code)))") }
    return !buffer.isEmpty
  }
}

/// read(2), which waits for input even on a non-blocking descriptor.
private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ code: inout Int32) -> Int {
  let count = read(descriptor, buffer.baseAddress, buffer.count)
  code = count < 0 ? errno : 0
  if code == EAGAIN {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&entry, 1, -1)
    code = EINTR
  }
  return count
}

/// The output of an export: a file that gets its name when it is complete, or standard output.
final class ArchiveOutput {
  private let file: ReplacementFile?
  private let output: CommandOutput

  /// - Parameter path: nil for standard output.
  init(_ path: String?, _ output: CommandOutput) throws(CommandError) {
    self.output = output
    guard let path else {
      file = nil
      return
    }
    do throws(StoreError) {
      file = try ReplacementFile(CacheDirectory.absolute(path), mode: 0o600)
    } catch {
      throw CommandError(status: ExitStatus.noCacheDirectory, message: error.message)
    }
  }

  func write(_ bytes: [UInt8]) throws(CommandError) {
    guard let file else { return try output.append(bytes) }
    do throws(StoreError) {
      try file.write(bytes)
    } catch {
      throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }

  func finish() throws(CommandError) {
    guard let file else { return try output.finish() }
    do throws(StoreError) {
      try file.commit()
    } catch {
      throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }
}

import Foundation
import Platform
import Threads

/// The way in which a process ended.
enum Ending: Hashable, Sendable {
  case exit(Int32)
  case signal(Int32)
}

/// The output of a process so far. Lines are without their LF.
struct Written: Sendable, CustomStringConvertible {
  var lines: [[UInt8]] = []
  /// The bytes after the last LF.
  var rest: [UInt8] = []
  var isClosed = false

  var text: String {
    lines.map { String(decoding: $0, as: UTF8.self) + "\n" }.joined() + String(decoding: rest, as: UTF8.self)
  }
  var description: String { String(text.suffix(4000)) + (isClosed ? "(closed)" : "") }
}

/// A running program with pipes on all three streams. It is killed when this value is released.
final class ChildProcess: Sendable {
  let output = Watched(Written())
  let errors = Watched(Written())
  let ending = Watched<Ending?>(nil)
  let identifier: pid_t

  private let input: Locked<FileHandle?>
  private let outputHandle: Locked<FileHandle?>
  private let isReading = Locked(false)
  private let process: Locked<Process>

  /// - Parameter reads: whether its output is read from the start. If not, call `startReading`.
  init(_ program: String, _ arguments: [String], environment: [String: String], reads: Bool = true) throws {
    let process = Process()
    let (input, output, errors) = (Pipe(), Pipe(), Pipe())
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = environment
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    let ending = self.ending
    process.terminationHandler = { process in
      let status = process.terminationStatus
      ending.change { $0 = process.terminationReason == .exit ? .exit(status) : .signal(status) }
    }
    _ = ignoredBrokenPipes
    try withUnblockedSignals { try process.run() }
    identifier = process.processIdentifier
    self.input = Locked(input.fileHandleForWriting)
    outputHandle = Locked(output.fileHandleForReading)
    self.process = Locked(process)
    Self.read(errors.fileHandleForReading, into: self.errors)
    if reads { startReading() }
  }

  deinit {
    kill()
  }

  func kill() {
    if ending.value == nil { signal(SIGKILL) }
  }

  func signal(_ number: Int32) {
    _ = Foundation.kill(identifier, number)
  }

  /// Starts to read the output.
  func startReading() {
    guard let handle = outputHandle.withLock({ $0.take() }) else { return }
    isReading.withLock { $0 = true }
    Self.read(handle, into: output)
  }

  /// Waits until the process has filled the pipe of its output, which is not read. The system reports no event, so this
  /// polls; the interval does not matter.
  func outputIsFull() async throws {
    let patienceEnds = Instant.now.advanced(by: patience)
    // The capacity of a 64 kB pipe depends on the sizes of the writes: a write that does not fit into the last page
    // begins a new one.
    var (last, unchanged) = (Int32(0), 0)
    while true {
      var unread: Int32 = 0
      outputHandle.withLock { handle in
        if let handle { _ = ioctl(handle.fileDescriptor, UInt(FIONREAD), &unread) }
      }
      unchanged = unread == last ? unchanged + 1 : 0
      last = unread
      if unread >= 32_768 && unchanged >= 20 { return }
      if Instant.now > patienceEnds { throw NeverHappened(what: "a full pipe", seen: "\(unread) bytes in it") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Closes the reading end of its standard output without having read from it.
  func closeOutput() throws {
    try outputHandle.withLock { try $0.take()?.close() }
  }

  /// Writes all bytes and waits while the pipe is full. Ignores a process that has ended; see its ending instead.
  func write(_ bytes: some Sequence<UInt8>) {
    input.withLock { handle in
      try? handle?.write(contentsOf: Data(bytes))
    }
  }

  func closeInput() {
    input.withLock { handle in
      try? handle?.close()
      handle = nil
    }
  }

  /// Waits for its end, and for all output before the end if the output is read.
  func ended() async throws -> Ending {
    let ending = try await ending.until("the end of process \(identifier)") { $0 }
    _ = try await errors.until("the end of its errors") { $0.isClosed ? true : nil }
    if isReading.withLock({ $0 }) { _ = try await output.until("the end of its output") { $0.isClosed ? true : nil } }
    return ending
  }

  private static func read(_ handle: FileHandle, into written: Watched<Written>) {
    startThread(name: "reader") {
      // `FileHandle.read(upToCount:)` would return only when it has read all the bytes.
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = Foundation.read(handle.fileDescriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        if count <= 0 { break }
        let arrived = buffer[..<count]
        written.change { $0.append(arrived) }
      }
      try? handle.close()
      written.change { $0.isClosed = true }
    }
  }
}

extension Written {
  fileprivate mutating func append(_ bytes: ArraySlice<UInt8>) {
    var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    let last = pieces.removeLast()
    for piece in pieces {
      lines.append(rest + piece)
      rest = []
    }
    rest += last
  }
}

/// Unblocks all signals for a child. Tests run on threads that block them, and a child would inherit that mask.
private func withUnblockedSignals(_ body: () throws -> Void) rethrows {
  var none = sigset_t()
  var before = sigset_t()
  sigemptyset(&none)
  pthread_sigmask(SIG_SETMASK, &none, &before)
  defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
  try body()
}

/// Makes a write to an ended process fail instead of ending the tests with SIGPIPE.
private let ignoredBrokenPipes: Bool = {
  _ = Foundation.signal(SIGPIPE, SIG_IGN)
  return true
}()

/// The environment of the tests without the proxy variables.
var plainEnvironment: [String: String] {
  ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
}

import Foundation
import Threads

/// How a process ended.
enum Ending: Hashable, Sendable {
  case exit(Int32)
  case signal(Int32)
}

/// What a process has written so far. A line is without its LF.
struct Written: Sendable, CustomStringConvertible {
  var lines: [[UInt8]] = []
  /// What came after the last LF.
  var rest: [UInt8] = []
  var isClosed = false

  var text: String {
    lines.map { String(decoding: $0, as: UTF8.self) + "\n" }.joined() + String(decoding: rest, as: UTF8.self)
  }
  var description: String { String(text.suffix(4000)) + (isClosed ? "(closed)" : "") }
}

/// A running program with pipes on all three streams. It is killed when nobody holds this value any more.
final class ChildProcess: Sendable {
  let output = Watched(Written())
  let errors = Watched(Written())
  let ending = Watched<Ending?>(nil)
  let identifier: pid_t

  private let input: Locked<FileHandle?>
  private let outputHandle: Locked<FileHandle?>
  private let process: Locked<Process>

  /// - Parameter reads: whether its output is read from the start; else `startReading` does it.
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
    try process.run()
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

  /// Begins to read what it writes.
  func startReading() {
    guard let handle = outputHandle.withLock({ $0.take() }) else { return }
    Self.read(handle, into: output)
  }

  /// Closes the reading end of its standard output without having read from it.
  func closeOutput() throws {
    try outputHandle.withLock { try $0.take()?.close() }
  }

  /// Writes all of it, waiting while the pipe is full. A process that is gone is no error here: its ending tells more.
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

  /// Waits for its end, and for everything that it wrote before.
  func ended() async throws -> Ending {
    let ending = try await ending.until("the end of process \(identifier)") { $0 }
    _ = try await errors.until("the end of its errors") { $0.isClosed ? true : nil }
    return ending
  }

  private static func read(_ handle: FileHandle, into written: Watched<Written>) {
    startThread(name: "reader") {
      while let data = try? handle.read(upToCount: 1 << 16), !data.isEmpty {
        written.change { $0.append(data) }
      }
      try? handle.close()
      written.change { $0.isClosed = true }
    }
  }
}

extension Written {
  fileprivate mutating func append(_ data: Data) {
    var pieces = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    let last = pieces.removeLast()
    for piece in pieces {
      lines.append(rest + piece)
      rest = []
    }
    rest += last
  }
}

/// Writing to a process that has ended is an error of that write, not the end of the tests.
private let ignoredBrokenPipes: Bool = {
  _ = Foundation.signal(SIGPIPE, SIG_IGN)
  return true
}()

/// The environment of the tests without what would lead a client elsewhere.
var plainEnvironment: [String: String] {
  ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
}

internal import Platform
internal import Threads

enum LogLevel: String, CaseIterable, Comparable {
  case error, warning, info, debug

  static func < (left: Self, right: Self) -> Bool {
    allCases.firstIndex(of: left)! < allCases.firstIndex(of: right)!
  }
}

/// Writes log lines to standard error, without query strings, user info and header values.
///
/// A line that would block is dropped, so that a host that does not read standard error cannot stop the worker.
final class Log: Sendable {
  private let level: Locked<LogLevel>
  /// Held from the poll for space to the write that uses it.
  private let writing = Locked(())

  init(level: LogLevel) { self.level = Locked(level) }

  func setLevel(_ new: LogLevel) { level.withLock { $0 = new } }

  func error(_ message: String) { write(.error) { message } }
  func warning(_ message: String) { write(.warning) { message } }
  func info(_ message: String) { write(.info) { message } }
  /// - Parameter message: called only if the level is enabled, because each load writes such a line.
  func debug(_ message: () -> String) { write(.debug, message) }

  private func write(_ lineLevel: LogLevel, _ message: () -> String) {
    guard lineLevel <= level.withLock({ $0 }) else { return }
    // At most PIPE_BUF bytes, which a pipe accepts as a whole or not at all.
    let line = singleLine("imageworker: \(lineLevel): \(message())", atMost: 4000)
    writing.withLock { _ in
      var descriptor = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
      guard poll(&descriptor, 1, 0) == 1, descriptor.revents & Int16(POLLOUT) != 0 else { return }
      _ = line.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }
  }
}

/// Writes the reason why the program cannot start to standard error, as one line.
public func printStartupError(_ message: String) {
  let line = singleLine("imageworker: \(message)", atMost: .max)
  _ = line.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress!, $0.count) }
}

/// Writes a text to standard output. Returns false if that fails.
public func printOutput(_ text: String) -> Bool {
  var rest = Array(text.utf8)[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { systemWrite(STDOUT_FILENO, $0.baseAddress!, $0.count) }
    if count < 0 && errno != EINTR { return false }
    rest = rest.dropFirst(max(0, count))
  }
  return true
}

/// The message as one line. Control characters in it, such as line breaks in names and values, become spaces.
func singleLine(_ text: String, atMost count: Int) -> [UInt8] {
  text.utf8.prefix(count).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 } + [0x0A]
}

/// write(2).
func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}

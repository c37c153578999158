internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

enum LogLevel: String, CaseIterable, Comparable {
  case error, warning, info, debug

  static func < (left: Self, right: Self) -> Bool {
    allCases.firstIndex(of: left)! < allCases.firstIndex(of: right)!
  }
}

/// Lines for people on standard error: no queries, no user info, no header values in them.
///
/// A host that does not read its worker's standard error must not be able to stop the worker: a line that would block
/// is dropped.
final class Log: Sendable {
  private let level: Locked<LogLevel>
  /// Held from the look whether there is room to the write that takes it.
  private let room = Locked(())

  init(level: LogLevel) { self.level = Locked(level) }

  func setLevel(_ new: LogLevel) { level.withLock { $0 = new } }

  func error(_ message: String) { write(.error) { message } }
  func warning(_ message: String) { write(.warning) { message } }
  func info(_ message: String) { write(.info) { message } }
  /// - Parameter message: made only where it is wanted, for there is one for each load.
  func debug(_ message: () -> String) { write(.debug, message) }

  private func write(_ lineLevel: LogLevel, _ message: () -> String) {
    guard lineLevel <= level.withLock({ $0 }) else { return }
    // No more than a pipe takes whole or not at all.
    let line = singleLine("imageworker: \(lineLevel): \(message())", atMost: 4000)
    room.withLock { _ in
      var descriptor = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
      guard poll(&descriptor, 1, 0) == 1, descriptor.revents & Int16(POLLOUT) != 0 else { return }
      _ = line.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }
  }
}

/// Writes a line on standard error: why the program ends before it has begun.
public func printStartupError(_ message: String) {
  let line = singleLine("imageworker: \(message)", atMost: .max)
  _ = line.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress!, $0.count) }
}

/// Names and values from outside may have line breaks in them; a message is one line all the same.
private func singleLine(_ text: String, atMost count: Int) -> [UInt8] {
  text.utf8.prefix(count).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 } + [0x0A]
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}

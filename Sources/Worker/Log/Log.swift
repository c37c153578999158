internal import LineRPC
internal import Platform
internal import Threads

/// Writes events as lines to standard error.
///
/// A line that would block is dropped, so that a host that does not read standard error cannot stop the worker.
final class Log: Sendable {
  private struct Settings {
    var level: LogLevel
    var format: LogFormat
  }

  private let settings: Locked<Settings>
  /// Held from the poll for space to the write that uses it.
  private let limiter = Locked(LogLimiter())

  init(level: LogLevel, format: LogFormat) {
    settings = Locked(Settings(level: level, format: format))
  }

  func configure(level: LogLevel, format: LogFormat) {
    settings.withLock { $0 = Settings(level: level, format: format) }
  }

  func write(_ event: LogEvent) {
    let settings = settings.withLock { $0 }
    guard event.level <= settings.level else { return }
    limiter.withLock { limiter in
      var omitted = 0
      if event.level == .warning, settings.level == .warning {
        guard let count = limiter.admit(event.name, at: .now) else { return }
        omitted = count
      }
      var descriptor = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
      guard poll(&descriptor, 1, 0) == 1, descriptor.revents & Int16(POLLOUT) != 0 else { return }
      let line = LogLine(event: event, time: WallClock.milliseconds, process: getpid(), omitted: omitted)
      writeToStandardError(line.bytes(as: settings.format))
    }
  }
}

/// Writes the reason why the program cannot start, or a hint for a person at the terminal, to standard error.
func printAlways(_ event: LogEvent, as format: LogFormat) {
  let line = LogLine(event: event, time: WallClock.milliseconds, process: getpid())
  writeToStandardError(line.bytes(as: format, atMost: format == .text ? .max : LogLine.maxLength))
}

/// Writes the refused option to standard error, as one line in the format that an option before it has set.
public func printStartError(_ error: OptionError) {
  printAlways(.workerFailed("\(error.option) \(error.message)", exitStatus: EX_USAGE), as: error.logFormat)
}

/// Writes a message of a command to standard error, as one line of text.
func printMessage(_ text: String) { writeToStandardError(singleLine("imageworker: \(text)", atMost: .max)) }

/// Writes a text to standard output. Returns false if that fails.
public func printOutput(_ text: String) -> Bool {
  (try? writeAll(Array(text.utf8), to: STDOUT_FILENO)) != nil
}

func writeToStandardError(_ bytes: [UInt8]) {
  _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress!, $0.count) }
}

/// Limits the lines of each event to a number per minute, so that many failing origins or images do not flood the log
/// of a host that wants warnings only.
struct LogLimiter {
  /// The maximum number of lines of an event in a period.
  static let maxLines = 10
  static let period = Duration.seconds(60)

  private struct Count {
    let start: Instant
    var lines = 0
    /// The lines left out since the last one that was written.
    var omitted = 0
  }

  private var counts: [LogEvent.Name: Count] = [:]

  /// Counts a line.
  ///
  /// - Returns: the number of lines that were left out before it; nil if it is to be left out itself.
  mutating func admit(_ name: LogEvent.Name, at now: Instant) -> Int? {
    var count = counts[name] ?? Count(start: now)
    if now - count.start >= Self.period { count = Count(start: now, omitted: count.omitted) }
    defer { counts[name] = count }
    guard count.lines < Self.maxLines else {
      count.omitted += 1
      return nil
    }
    count.lines += 1
    defer { count.omitted = 0 }
    return count.omitted
  }
}

import Foundation
import Testing
import Threads

/// Two connected descriptors, closed at the latest when the test releases them.
final class Channel: Sendable {
  let reading: Int32
  let writing: Int32
  private let isClosed = Locked((reading: false, writing: false))

  static func pipe() throws -> Channel {
    var ends: [Int32] = [-1, -1]
    try #require(Foundation.pipe(&ends) == 0)
    return Channel(reading: ends[0], writing: ends[1])
  }

  /// - Parameter type: as of socketpair(2); each write is one packet with `SOCK_SEQPACKET`.
  static func socket(_ type: Int32) throws -> Channel {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
    return Channel(reading: ends[0], writing: ends[1])
  }

  static func terminal() throws -> Channel {
    var (main, terminal): (Int32, Int32) = (-1, -1)
    try #require(openpty(&main, &terminal, nil, nil, nil) == 0)
    return Channel(reading: main, writing: terminal)
  }

  init(reading: Int32, writing: Int32) {
    self.reading = reading
    self.writing = writing
  }

  deinit {
    closeReading()
    closeWriting()
  }

  func closeReading() {
    isClosed.withLock {
      if !$0.reading { close(reading) }
      $0.reading = true
    }
  }

  func closeWriting() {
    isClosed.withLock {
      if !$0.writing { close(writing) }
      $0.writing = true
    }
  }

  func setNonBlocking() {
    for end in [reading, writing] { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
  }

  /// The result of one blocking read; empty at the end.
  func read(atMost count: Int = 1 << 16) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    while true {
      let got = Foundation.read(reading, &bytes, count)
      if got >= 0 { return Array(bytes.prefix(got)) }
      if errno != EAGAIN && errno != EINTR { return [] }
      var entry = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
      _ = poll(&entry, 1, -1)
    }
  }

  func read(exactly count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = read(atMost: count - bytes.count)
      if more.isEmpty { break }
      bytes += more
    }
    return bytes
  }

  func readToEnd() -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let more = read()
      if more.isEmpty { return bytes }
      bytes += more
    }
  }

  func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(writing, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) }
    }
  }
}

/// Collects values from other threads, and waits for them.
final class Record<Element: Sendable>: Sendable {
  private let elements = Locked<[Element]>([])

  var all: [Element] { elements.withLock { $0 } }

  func add(_ element: Element) {
    elements.withLock { $0.append(element) }
    elements.notify()
  }

  /// Waits until there are `count` values, and returns all.
  func wait(for count: Int) -> [Element] {
    elements.wait { $0.count >= count ? $0 : nil } ?? []
  }
}

/// Reports its deinitialization.
final class Token: Sendable {
  private let gone: Record<Void>
  init(_ gone: Record<Void>) { self.gone = gone }
  deinit { gone.add(()) }
}

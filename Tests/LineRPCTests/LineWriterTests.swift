import Foundation
import Platform
import Testing
import Threads

@testable import LineRPC

struct LineWriterTests {
  private let closed = Record<Int32>()
  private let relieved = Record<Void>()

  init() { signal(SIGPIPE, SIG_IGN) }

  /// The thread keeps the channel open until the end.
  private func writer(_ channel: Channel, high: Int = 100_000, low: Int = 1000) -> LineWriter {
    LineWriter(
      descriptor: channel.writing, marks: .init(high: high, low: low),
      onRelief: { [relieved, channel] in withExtendedLifetime(channel) { relieved.add(()) } },
      onClosed: { [closed] in closed.add($0) })
  }

  private func line(_ number: Int, count: Int = 100) -> [UInt8] {
    let text = Array("\(number)".utf8)
    return text + [UInt8](repeating: 0x2E, count: count - 1 - text.count) + [0x0A]
  }

  private func token(_ serial: UInt64) -> RequestToken { RequestToken(id: nil, serial: serial, batch: nil) }

  @Test func `lines are written in the order of sending, and finish waits for the last`() throws {
    let channel = try Channel.pipe()
    let received = Record<[UInt8]>()
    startThread(name: "host") { received.add(channel.readToEnd()) }
    let writer = writer(channel)
    for number in 0..<20_000 { writer.send(line(number), about: nil, deferred: number % 3 == 0) }
    writer.finish()
    #expect(writer.backlog == 0)
    channel.closeWriting()
    #expect(received.wait(for: 1) == [(0..<20_000).flatMap { line($0) }])
    #expect(closed.all.isEmpty)
  }

  @Test func `a deferred line is written with the next flush`() throws {
    let channel = try Channel.pipe()
    let writer = writer(channel)
    writer.send(line(1), deferred: true)
    writer.flush()
    #expect(channel.read(exactly: 100) == line(1))
    writer.send(line(2), deferred: true)
    writer.send(line(3))
    #expect(channel.read(exactly: 200) == line(2) + line(3))
    writer.send(line(4), deferred: true)
    writer.waitForRoom(below: 1)
    #expect(channel.read(exactly: 100) == line(4))
    writer.send(line(5), deferred: true)
    writer.finish()
    #expect(channel.read(exactly: 100) == line(5))
  }

  @Test(arguments: [Kind.pipe, .socket])
  func `the lines of two threads keep their order, whoever writes them`(kind: Kind) throws {
    let channel = try channel(kind)
    let writer = writer(channel)
    let sent = Record<Void>()
    for first in [0, 1_000_000] {
      startThread(name: "sender") {
        for number in first..<first + 20_000 {
          writer.send(line(number), deferred: number % 3 != 0)
          if number % 2 == 0 { writer.flush() }
        }
        sent.add(())
      }
    }
    startThread(name: "finisher") {
      _ = sent.wait(for: 2)
      writer.finish()
      channel.closeWriting()
    }
    let lines = channel.readToEnd().split(separator: 0x0A)
    let numbers = lines.compactMap { Int(String(decoding: $0.prefix { $0 != 0x2E }, as: UTF8.self)) }
    #expect(numbers.filter { $0 < 1_000_000 } == Array(0..<20_000))
    #expect(numbers.filter { $0 >= 1_000_000 } == Array(1_000_000..<1_020_000))
    #expect(writer.backlog == 0)
  }

  @Test(arguments: [Kind.pipe, .socket])
  func `flush never waits for a host that does not read`(kind: Kind) throws {
    let channel = try channel(kind)
    let writer = writer(channel)
    for number in 0..<10_000 {
      writer.send(line(number), deferred: true)
      writer.flush()
    }
    #expect(writer.backlog > 0)
    #expect(channel.read(exactly: 1_000_000) == (0..<10_000).flatMap { line($0) })
    writer.finish()
  }

  @Test func `flush leaves to the thread what a socket does not take`() throws {
    let channel = try Channel.socket(streamSocket)
    var size: Int32 = 2048
    setsockopt(channel.writing, SOL_SOCKET, SO_SNDBUF, &size, 4)
    let received = Record<[UInt8]>()
    startThread(name: "host") { received.add(channel.readToEnd()) }
    let writer = writer(channel)
    for number in 0..<2000 {
      writer.send(line(number, count: 4001), deferred: true)
      writer.flush()
    }
    writer.finish()
    channel.closeWriting()
    #expect(received.wait(for: 1) == [(0..<2000).flatMap { line($0, count: 4001) }])
  }

  @Test(arguments: [Kind.pipe, .socket])
  func `flush notices that the reader is gone`(kind: Kind) throws {
    for _ in 0..<100 {
      let channel = try channel(kind)
      let closed = Record<Int32>()
      let writer = LineWriter(descriptor: channel.writing) { [channel] number in
        withExtendedLifetime(channel) { closed.add(number) }
      }
      channel.closeReading()
      for number in 0..<20 {
        writer.send(line(number), deferred: true)
        writer.flush()
      }
      #expect(closed.wait(for: 1) == [EPIPE])
      #expect(!writer.finish())
    }
  }

  #if os(Linux)
    @Test func `many lines are written at once, and only whole lines`() throws {
      let channel = try Channel.socket(Int32(SOCK_SEQPACKET.rawValue))
      let writer = writer(channel)
      for number in 0..<10_000 { writer.send(line(number)) }
      var packets: [[UInt8]] = []
      var count = 0
      while count < 1_000_000 {
        packets.append(channel.read())
        count += packets.last?.count ?? 0
      }
      writer.finish()
      #expect(packets.flatMap { $0 } == (0..<10_000).flatMap { line($0) })
      #expect(packets.allSatisfy { $0.last == 0x0A && $0.count % 100 == 0 })
      // The socket takes some hundred packets before it is full; all waiting lines are then written in the largest
      // pieces.
      #expect(packets.count < 5000)
    }
  #endif

  @Test func `short writes and a full non-blocking descriptor lose nothing`() throws {
    let channel = try Channel.socket(streamSocket)
    channel.setNonBlocking()
    var size: Int32 = 4096
    setsockopt(channel.writing, SOL_SOCKET, SO_SNDBUF, &size, 4)
    let received = Record<[UInt8]>()
    startThread(name: "host") { received.add(channel.readToEnd()) }
    let writer = writer(channel)
    for number in 0..<300 { writer.send(line(number, count: 9001)) }
    writer.finish()
    channel.closeWriting()
    #expect(received.wait(for: 1) == [(0..<300).flatMap { line($0, count: 9001) }])
  }

  @Test func `the writer waits for a host that does not read, and loses nothing`() throws {
    let channel = try Channel.pipe()
    let writer = writer(channel)
    let lines = (0..<5000).map { line($0) }
    for line in lines { writer.send(line) }
    #expect(writer.isCongested)
    #expect(writer.backlog > 100_000)
    #expect(relieved.all.isEmpty)

    let passed = Record<Int>()
    startThread(name: "reader") {
      writer.waitForRoom(below: 50_000)
      passed.add(writer.backlog)
    }
    #expect(passed.all.isEmpty)
    #expect(channel.read(exactly: 500_000) == lines.flatMap { $0 })
    #expect(passed.wait(for: 1)[0] < 50_000)
    _ = relieved.wait(for: 1)
    #expect(!writer.isCongested)
    writer.finish()
    #expect(relieved.all.count == 1)
    #expect(writer.backlog == 0)
  }

  @Test func `relief is reported once for each congestion`() throws {
    let channel = try Channel.pipe()
    let writer = writer(channel, high: 200_000, low: 0)
    for round in 1...3 {
      for number in 0..<3000 { writer.send(line(number)) }
      #expect(writer.isCongested)
      _ = channel.read(exactly: 300_000)
      #expect(relieved.wait(for: round).count == round)
    }
    writer.send(line(1))
    writer.finish()
    #expect(relieved.all.count == 3)
  }

  @Test func `relief is reported after a flush, too`() throws {
    let channel = try Channel.pipe()
    let writer = writer(channel, high: 100, low: 0)
    for round in 1...50 {
      writer.send(line(round), deferred: true)
      writer.flush()
      #expect(relieved.wait(for: round).count == round)
    }
    writer.finish()
  }

  @Test func `queued progress is replaced by newer progress`() throws {
    let channel = try Channel.pipe()
    let writer = writer(channel)
    // More than the pipe holds, so that all later lines wait.
    writer.send([UInt8](repeating: 0x2E, count: 999_999) + [0x0A])
    writer.sendReplaceable(line(1), about: token(1))
    writer.sendReplaceable(line(2), about: token(2))
    writer.sendReplaceable(line(3), about: token(1))
    writer.send(line(4), about: token(1))
    writer.sendReplaceable(line(5), about: token(1))
    writer.sendReplaceable(line(6), about: token(1))
    #expect(writer.backlog <= 1_000_400)
    _ = channel.read(exactly: 1_000_000)
    #expect(channel.read(exactly: 400) == line(3) + line(2) + line(4) + line(6))
    writer.finish()
  }

  enum Kind: CaseIterable { case pipe, socket, terminal }

  private func channel(_ kind: Kind) throws -> Channel {
    switch kind {
    case .pipe: try .pipe()
    case .socket: try .socket(streamSocket)
    case .terminal: try .terminal()
    }
  }

  @Test(arguments: Kind.allCases)
  func `a reader's end is noticed while nothing is written`(kind: Kind) throws {
    let channel = try channel(kind)
    let writer = writer(channel)
    writer.send(line(1))
    writer.waitForRoom(below: 1)
    _ = channel.read()
    #expect(closed.all.isEmpty)
    channel.closeReading()
    #expect(closed.wait(for: 1) == [EPIPE])
    writer.send(line(2))
    #expect(writer.backlog == 0)
    writer.finish()
    #expect(closed.all == [EPIPE])
  }

  @Test(arguments: [Kind.pipe, .socket])
  func `a reader's end during a write discards all queued lines`(kind: Kind) throws {
    let channel = try channel(kind)
    let writer = writer(channel)
    for number in 0..<20_000 { writer.send(line(number)) }
    let passed = Record<Void>()
    startThread(name: "reader") {
      writer.waitForRoom(below: 1)
      passed.add(())
    }
    startThread(name: "drain") {
      writer.finish()
      passed.add(())
    }
    _ = channel.read(exactly: 10_000)
    channel.closeReading()
    // A socket is reset if it is closed with unread data.
    #expect([EPIPE, ECONNRESET].contains(closed.wait(for: 1)[0]))
    _ = passed.wait(for: 2)
    #expect(writer.backlog == 0)
    #expect(!writer.isCongested)
    #expect(closed.all.count == 1)
  }

  @Test func `finish may be called from onClosed`() throws {
    let channel = try Channel.pipe()
    let late = Locked<LineWriter?>(nil)
    let finished = Record<Void>()
    let writer = LineWriter(descriptor: channel.writing) { [channel] _ in
      late.wait { $0 }?.finish()
      channel.closeWriting()
      finished.add(())
    }
    late.withLock { $0 = writer }
    late.notify()
    channel.closeReading()
    _ = finished.wait(for: 1)
    late.withLock { $0 = nil }
  }

  @Test func `a regular file is written to the end and never reported closed`() throws {
    let path = NSTemporaryDirectory() + "LineWriterTests-\(UUID().uuidString)"
    defer { unlink(path) }
    let writer = writer(Channel(reading: open("/dev/null", O_RDONLY), writing: open(path, O_WRONLY | O_CREAT, 0o600)))
    for number in 0..<1000 { writer.send(line(number)) }
    writer.finish()
    #expect(try Data(contentsOf: URL(filePath: path)) == Data((0..<1000).flatMap { line($0) }))
    #expect(closed.all.isEmpty)
  }

  @Test func `a descriptor that cannot be written is reported with its errno`() throws {
    let writer = writer(Channel(reading: open("/dev/null", O_RDONLY), writing: open("/", O_RDONLY)))
    writer.send(line(1))
    #expect(closed.wait(for: 1) == [EBADF])
  }

  @Test func `a finished writer releases everything`() throws {
    let channel = try Channel.pipe()
    let gone = Record<Void>()
    do {
      let witness = Token(gone)
      let writer = LineWriter(descriptor: channel.writing) { [witness] _ in _ = witness }
      writer.send(line(1))
      writer.finish()
      writer.send(line(2))
      writer.sendReplaceable(line(3), about: token(1))
      #expect(writer.backlog == 0)
    }
    #expect(gone.wait(for: 1).count == 1)
    channel.closeWriting()
    #expect(channel.readToEnd() == line(1))
  }
}

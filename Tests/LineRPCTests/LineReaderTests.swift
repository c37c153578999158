import Foundation
import LineRPC
import Testing
import Threads

struct LineReaderTests {
  private let batches = Record<[Incoming]>()
  private let ends = Record<LineReader.End>()

  /// The thread keeps the channel open until the end.
  private func start(_ channel: Channel, maxLine: Int = 1 << 20) {
    LineReader(
      descriptor: channel.reading, maxLine: maxLine, handle: { [batches] in batches.add($0) },
      onEnd: { [ends, channel] in
        ends.add($0)
        channel.closeReading()
      })
  }

  private func request(_ id: Int) -> [UInt8] { Array(#"{"id":\#(id),"method":"load"}"#.utf8) }

  @Test func `lines are passed on in their order, then the end`() throws {
    let channel = try Channel.pipe()
    start(channel)
    for id in 0..<5000 { channel.write(request(id) + [0x0A]) }
    channel.closeWriting()
    #expect(ends.wait(for: 1) == [.endOfInput])
    #expect(batches.all.flatMap { $0 } == (0..<5000).map { .call(load($0)) })
    #expect(batches.all.allSatisfy { !$0.isEmpty })
  }

  @Test func `a byte order mark, CRs, blank lines and a missing last LF are accepted`() throws {
    let channel = try Channel.pipe()
    start(channel)
    channel.write([0xEF, 0xBB, 0xBF] + request(1) + Array("\r\n\n  \n".utf8) + request(2))
    channel.closeWriting()
    #expect(ends.wait(for: 1) == [.endOfInput])
    #expect(batches.all.flatMap { $0 } == [.call(load(1)), .call(load(2))])
  }

  @Test func `a request is passed on before the next one arrives`() throws {
    let channel = try Channel.pipe()
    start(channel)
    channel.write(request(1) + [0x0A])
    #expect(batches.wait(for: 1) == [[.call(load(1))]])
    channel.write(request(2) + [0x0A])
    #expect(batches.wait(for: 2) == [[.call(load(1))], [.call(load(2))]])
    #expect(ends.all.isEmpty)
  }

  @Test func `a line over the limit is refused with id null, and the next one is read`() throws {
    let channel = try Channel.pipe()
    start(channel, maxLine: 1000)
    channel.write([UInt8](repeating: 0x20, count: 300_000))
    let refusal = RPCError.invalidRequest("a line must not be longer than 1000 bytes")
    #expect(batches.wait(for: 1) == [[.call(.refused(refusal, id: nil))]])
    channel.write([0x0A] + request(1) + [0x0A])
    #expect(batches.wait(for: 2).last == [.call(load(1))])
  }

  @Test func `a malformed line is refused, and the next one is read`() throws {
    let channel = try Channel.pipe()
    start(channel)
    channel.write(Array("{\"id\":1,\n[[[[[\n\0\u{FF}\n".utf8) + [0xFF, 0xFE, 0x0A] + request(1) + [0x0A])
    channel.closeWriting()
    _ = ends.wait(for: 1)
    let all = batches.all.flatMap { $0 }
    #expect(all.count == 5)
    for case .call(.refused(let error, let id)) in all.dropLast() {
      #expect(error.code == -32700)
      #expect(id == nil)
    }
    #expect(all.last == .call(load(1)))
  }

  @Test func `the deepest line does not exhaust the reader's stack`() throws {
    let channel = try Channel.pipe()
    start(channel)
    for depth in [512, 513, 30_000] {
      channel.write([UInt8](repeating: UInt8(ascii: "["), count: depth))
      channel.write([UInt8](repeating: UInt8(ascii: "]"), count: depth) + [0x0A])
    }
    channel.write(request(1))
    channel.closeWriting()
    #expect(ends.wait(for: 1) == [.endOfInput])
    #expect(batches.all.flatMap { $0 }.last == .call(load(1)))
  }

  @Test func `the reader waits on a non-blocking descriptor`() throws {
    let channel = try Channel.pipe()
    channel.setNonBlocking()
    start(channel)
    channel.write(request(1) + [0x0A])
    _ = batches.wait(for: 1)
    channel.write(request(2))
    channel.closeWriting()
    #expect(ends.wait(for: 1) == [.endOfInput])
    #expect(batches.all.flatMap { $0 } == [.call(load(1)), .call(load(2))])
  }

  @Test func `a read error is distinguished from the end`() throws {
    start(Channel(reading: open("/", O_RDONLY), writing: open("/dev/null", O_WRONLY)))
    #expect(ends.wait(for: 1) == [.failed(EISDIR)])
    #expect(batches.all.isEmpty)
  }

  @Test func `a blocked handler blocks the sender, and no line is lost`() throws {
    let channel = try Channel.pipe()
    let gate = Locked(false)
    LineReader(
      descriptor: channel.reading, maxLine: 1000,
      handle: { [batches] in
        batches.add($0)
        _ = gate.wait { $0 ? () : nil }
      },
      onEnd: { [ends, channel] in
        ends.add($0)
        channel.closeReading()
      })
    channel.write(request(0) + [0x0A])
    _ = batches.wait(for: 1)

    channel.setNonBlocking()
    var sent = 1
    while true {
      let line = request(sent) + [0x0A]
      guard write(channel.writing, line, line.count) == line.count else { break }
      sent += 1
    }
    #expect(errno == EAGAIN)
    #expect(batches.all.count == 1)

    gate.withLock { $0 = true }
    gate.notify()
    channel.closeWriting()
    #expect(ends.wait(for: 1) == [.endOfInput])
    #expect(batches.all.flatMap { $0 } == (0..<Int64(sent)).map { .call(load($0)) })
  }
}

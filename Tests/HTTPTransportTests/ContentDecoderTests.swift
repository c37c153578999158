import CZlib
import Foundation
import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct ContentDecoderTests {
  let transport = Transport.forTests()
  /// Random enough that its compressed form is long, with a part that is not.
  static let content = (0..<200_000).map {
    $0 < 100_000 ? UInt8(truncatingIfNeeded: $0 &* $0 &* 2_654_435_761 >> 13) : 7
  }

  /// - Parameter windowBits: 31 for gzip, 15 for zlib's format, -15 for what is in it.
  static func coded(_ bytes: [UInt8] = content, windowBits: Int32) -> [UInt8] {
    var stream = z_stream()
    deflateInit2_(
      &stream, 6, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    defer { deflateEnd(&stream) }
    var output = [UInt8](repeating: 0, count: bytes.count + 1000)
    let count = output.count
    bytes.withUnsafeBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
        (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
        #expect(deflate(&stream, Z_FINISH) == Z_STREAM_END)
      }
    }
    return Array(output.prefix(count - Int(stream.avail_out)))
  }

  static let codings: [(name: String, windowBits: Int32)] = [
    ("gzip", 31), ("X-GZip", 31), ("deflate", 15), ("deflate", -15),
  ]

  /// What a decoder makes of pieces.
  private func decode(_ coding: String, _ pieces: [[UInt8]]) -> (bytes: [UInt8], isComplete: Bool, isMalformed: Bool) {
    let decoder = ContentDecoder(coding)!
    var bytes: [UInt8] = []
    for piece in pieces {
      let outcome = piece.withUnsafeBytes {
        decoder.decode($0) {
          bytes += $0; return .more
        }
      }
      if case .malformed = outcome { return (bytes, false, true) }
    }
    return (bytes, decoder.isComplete, false)
  }

  @Test(arguments: codings) func `pieces of any size make the content`(name: String, windowBits: Int32) {
    let coded = Self.coded(windowBits: windowBits)
    for size in [1, 2, 3, 1000, coded.count] {
      let pieces = stride(from: 0, to: coded.count, by: size).map { Array(coded[$0..<min($0 + size, coded.count)]) }
      let result = decode(name.lowercased(), pieces)
      #expect(result.bytes == Self.content && result.isComplete && !result.isMalformed)
    }
  }

  @Test(arguments: codings) func `what breaks off is not complete, wherever it does`(name: String, windowBits: Int32) {
    let coded = Self.coded(Array(Self.content.prefix(3000)), windowBits: windowBits)
    for count in 1..<coded.count { #expect(!decode(name.lowercased(), [Array(coded.prefix(count))]).isComplete) }
    #expect(decode(name.lowercased(), []).isComplete, "no content at all")
  }

  @Test func `gzip may have several members, and nothing else may follow`() {
    let member = Self.coded(windowBits: 31)
    let both = decode("gzip", [member + member])
    #expect(both.bytes == Self.content + Self.content && both.isComplete)
    #expect(!decode("gzip", [member, Array(member.dropLast())]).isComplete)
    #expect(!decode("gzip", [member + [0]]).isComplete)
    #expect(decode("gzip", [member + Array("more than that".utf8)]).isMalformed)
    #expect(decode("deflate", [Self.coded(windowBits: 15) + [0]]).isMalformed)
  }

  @Test func `a wrong checksum is malformed`() {
    var coded = Self.coded(windowBits: 31)
    coded[coded.count - 6] ^= 1
    #expect(decode("gzip", [coded]).isMalformed)
  }

  /// How a transfer ends whose body is those bytes, up to the end of its connection.
  private func outcome(_ coding: String, _ body: [UInt8], maxBytes: Int64 = 1 << 20) -> Recorder {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\r\n")
      connection.send(body)
      connection.close()
    }
    return transport.get(server.url()) { $0.maxBytes = maxBytes }
  }

  @Test(arguments: codings) func `a body without a length ends where its coding does`(name: String, windowBits: Int32)
    throws
  {
    let coded = Self.coded(windowBits: windowBits)
    let recorder = outcome(name, coded)
    #expect(try recorder.summary().wireBytes == Int64(coded.count))
    #expect(recorder.now.body == Self.content)
    #expect(try outcome(name, Array(coded.dropLast(coded.count / 2))).error().kind == .truncated)
    #expect(try outcome(name, Array(coded.dropLast())).error().kind == .truncated)
  }

  @Test(arguments: ["br", "zstd", "compress", "gzip, gzip"])
  func `a coding that was not asked for is malformed, unless nobody wants the body`(name: String) throws {
    #expect(try outcome(name, [1, 2, 3]).error().kind == .malformed)
    let server = ScriptedServer { _, connection in
      connection.respond("404 Not Found", ["Content-Encoding: \(name)"], body: "x")
    }
    #expect(try transport.get(server.url(), Recorder(onHead: { _ in .discard })).summary().head.status == 404)
  }

  @Test func `what it is unpacked to counts for the limit`() throws {
    let bomb = Self.coded([UInt8](repeating: 0, count: 50_000_000), windowBits: 31)
    let recorder = outcome("gzip", bomb)
    #expect(try recorder.error().kind == .tooLarge)
    #expect(recorder.now.body.count <= 1 << 20)
  }
}

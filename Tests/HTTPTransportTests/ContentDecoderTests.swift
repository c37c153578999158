import CZlib
import Foundation
import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct ContentDecoderTests {
  let transport = Transport.forTests()
  /// Random enough for a long compressed form, with a part that compresses well.
  static let content = (0..<200_000).map {
    $0 < 100_000 ? UInt8(truncatingIfNeeded: $0 &* $0 &* 2_654_435_761 >> 13) : 7
  }

  /// - Parameter windowBits: 31 for gzip, 15 for zlib's format, -15 for raw deflate.
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

  /// Decodes pieces and collects the output. `isContent` tells whether bytes begin like uncoded content.
  private func decode(
    _ coding: String, _ pieces: [[UInt8]], isContent: @escaping TransferRequest.ContentTest = { _ in false }
  ) -> (bytes: [UInt8], isComplete: Bool, isMalformed: Bool) {
    let decoder = ContentDecoder(coding, isContent: isContent)
    var bytes: [UInt8] = []
    for piece in pieces {
      let outcome = piece.withUnsafeBytes {
        decoder.decode($0) {
          bytes += $0; return .more
        }
      }
      switch outcome {
      case .malformed, .unknown: return (bytes, false, true)
      default: break
      }
    }
    return (bytes, decoder.isComplete, false)
  }

  /// The start of the content in these tests. The first byte alone does not suffice.
  static let magic: [UInt8] = [0x89, 0x50, 0x4e, 0x47]
  static let isContent: TransferRequest.ContentTest = { prefix in
    prefix.count < magic.count && magic.starts(with: prefix) ? nil : prefix.starts(with: magic)
  }

  private func pieces(_ bytes: [UInt8], of size: Int) -> [[UInt8]] {
    stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
  }

  @Test(arguments: codings) func `the content is the same for pieces of any size`(name: String, windowBits: Int32) {
    let coded = Self.coded(windowBits: windowBits)
    for size in [1, 2, 3, 1000, coded.count] {
      for test: TransferRequest.ContentTest in [{ _ in false }, Self.isContent] {
        let result = decode(name.lowercased(), pieces(coded, of: size), isContent: test)
        #expect(result.bytes == Self.content && result.isComplete && !result.isMalformed)
      }
    }
  }

  @Test(arguments: codings) func `content that breaks off anywhere is incomplete`(name: String, windowBits: Int32) {
    let coded = Self.coded(Array(Self.content.prefix(3000)), windowBits: windowBits)
    for count in 1..<coded.count { #expect(!decode(name.lowercased(), [Array(coded.prefix(count))]).isComplete) }
    #expect(decode(name.lowercased(), []).isComplete, "no content at all")
  }

  @Test(arguments: ["none", "utf-8", "binary", "aws-chunked", "identity;q=1", "br", "gzip", "x-gzip", "deflate"])
  func `content that is not coded passes unchanged`(coding: String) {
    let content = Self.magic + Self.content.prefix(3000)
    for size in [1, 2, 3, 5, content.count] {
      let result = decode(coding, pieces(content, of: size), isContent: Self.isContent)
      #expect(result.bytes == content && result.isComplete)
    }
  }

  @Test(arguments: ["gzip", "deflate", "gzip, identity", "aws-chunked,gzip"])
  func `the bytes distinguish gzip from zlib's format, not the name`(coding: String) {
    let gzip = Self.coded(windowBits: 31)
    #expect(decode(coding, [gzip], isContent: Self.isContent).bytes == Self.content)
    let zlib = decode(coding, [Self.coded(windowBits: 15)], isContent: Self.isContent)
    #expect(coding.contains(",") ? zlib.isMalformed : zlib.bytes == Self.content)
  }

  @Test func `gzip may have several members, and other bytes after them are padding`() {
    let member = Self.coded(windowBits: 31)
    let both = decode("gzip", [member + member])
    #expect(both.bytes == Self.content + Self.content && both.isComplete)
    #expect(!decode("gzip", [member, Array(member.dropLast())]).isComplete)
    let paddings = [[0], [UInt8](repeating: 0, count: 512), Array("more than that".utf8), [0x1f], [0x1f, 0x8b, 7]]
    for padding in paddings {
      for size in [1, member.count, 1_000_000] {
        let padded = decode("gzip", pieces(member + padding, of: size))
        #expect(padded.bytes == Self.content && padded.isComplete && !padded.isMalformed)
      }
      let zlib = decode("deflate", [Self.coded(windowBits: 15) + padding])
      #expect(zlib.bytes == Self.content && zlib.isComplete && !zlib.isMalformed)
    }
    #expect(!decode("gzip", [member, Array(member.prefix(10))]).isComplete, "another member's header")
  }

  @Test func `a wrong checksum is malformed`() {
    var coded = Self.coded(windowBits: 31)
    coded[coded.count - 6] ^= 1
    #expect(decode("gzip", [coded]).isMalformed)
  }

  /// The outcome of a transfer whose body is `bytes`, up to the end of its connection.
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
    #expect(recorder.now.body == Self.content)
    #expect(try outcome(name, Array(coded.dropLast(coded.count / 2))).error().kind == .truncated)
    #expect(try outcome(name, Array(coded.dropLast())).error().kind == .truncated)
  }

  @Test func `padding without end is not read`() throws {
    let member = Self.coded(windowBits: 31)
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
      connection.send(member)
      while connection.send([UInt8](repeating: 0, count: 1 << 16)) {}
    }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().bytesReceived == Int64(Self.content.count))
    #expect(recorder.now.body == Self.content)
  }

  @Test(arguments: ["br", "zstd", "compress", "gzip", "none"])
  func `a coding that cannot be decoded is an error unless the body is discarded`(name: String) throws {
    #expect(try outcome(name, [1, 2, 3]).error().kind == .undecodable)
    let server = ScriptedServer { _, connection in
      connection.respond("404 Not Found", ["Content-Encoding: \(name)"], body: "x")
    }
    #expect(try transport.get(server.url(), Recorder(onHead: { _ in .discard })).summary().head.status == 404)
  }

  @Test func `the decoded size counts for the limit`() throws {
    let bomb = Self.coded([UInt8](repeating: 0, count: 50_000_000), windowBits: 31)
    let recorder = outcome("gzip", bomb)
    #expect(try recorder.error().kind == .tooLarge)
    #expect(recorder.now.body.count <= 1 << 20)
  }
}

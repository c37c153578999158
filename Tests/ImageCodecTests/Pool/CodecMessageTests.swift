import Testing

@testable import ImageCodec

struct CodecMessageTests {
  @Test func `a request is decoded as it was encoded`() throws {
    let header = ImageHeader(.webp, width: 5, height: 6)
    let transform = Transform.with { ($0.width, $0.height, $0.fit, $0.quality) = (100, 50, .cover, 33) }
    for output in [
      DecodeTask.Output.check, .placeholder, .encoded("/tmp/a b"), .pixels("x"), .preview("y", maxSide: 77),
      .facts(.perceptualHash),
    ] {
      let task = DecodeTask(
        source: .bytes([]), header: header, transform: transform, output: output, wantsPlaceholder: true, maxPixels: 99)
      var bytes = CodecRequest(task).message.bytes
      let message = try #require(CodecMessage(takenFrom: &bytes))
      #expect(bytes.isEmpty)
      #expect(CodecRequest(message) == CodecRequest(task))
    }
  }

  @Test func `a reply is decoded as it was encoded`() throws {
    var decoded = Decoded()
    (decoded.bytes, decoded.format, decoded.width, decoded.height) = (1234, .avif, 7, 8)
    decoded.placeholder = Placeholder(thumbHash: [0, 255, 7], color: 0x010203)
    decoded.facts.perceptualHash = .max
    for reply in [
      CodecReply.ready(
        CodecFormats(decode: [.png, .gif], encode: [.jpeg], libraries: ["libvips 8.14.1"]),
        sandbox: ["seccomp", "rlimits"]),
      .started(12), .ended(12, status: 9), .done(decoded), .failed(.corrupt("it ends too early")),
      .failed(.tooManyPixels("")), .failed(.overLimit(1_000_000, width: 4_294_967_295, height: 7, frames: 3)),
      .failed(.tooLong(sideOf: "the result", 16_383, width: 20_000, height: 5)),
    ] {
      var bytes = reply.message.bytes
      let message = try #require(CodecMessage(takenFrom: &bytes))
      #expect(CodecReply(message) == reply)
    }
  }

  @Test func `an incomplete message stays in the buffer, and so do the bytes after a message`() {
    var bytes = Array("says=rea".utf8)
    #expect(CodecMessage(takenFrom: &bytes) == nil)
    bytes += Array("dy\nx=1=2\n".utf8)
    #expect(CodecMessage(takenFrom: &bytes) == nil)
    bytes += Array("\nrest".utf8)
    let message = CodecMessage(takenFrom: &bytes)
    #expect(message?["says"] == "ready")
    #expect(message?["x"] == "1=2")
    #expect(bytes == Array("rest".utf8))
  }

  @Test func `a value cannot become another field`() throws {
    var message = CodecMessage()
    message["text"] = "a\nsays=done\r\nb"
    var bytes = message.bytes
    let read = try #require(CodecMessage(takenFrom: &bytes))
    #expect(read["says"] == nil)
    #expect(read["text"] == "a says=done\r b")
  }

  @Test(arguments: [
    "", "says=done", "says=done\nbytes=-1\nwidth=1\nheight=1\nframes=1\nchannels=1\nsourceWidth=1\nsourceHeight=1",
    "says=done\nbytes=99999999999999999999\nwidth=1\nheight=1\nframes=1\nchannels=1\nsourceWidth=1\nsourceHeight=1",
    "says=failed\nkind=crashed", "says=failed", "says=hello",
  ]) func `an invalid reply is rejected`(text: String) {
    var bytes = Array((text + "\n\n").utf8)
    #expect(CodecMessage(takenFrom: &bytes).flatMap(CodecReply.init) == nil)
  }

  @Test func `a text from a decoder is short and plain`() {
    let hostile = "\u{1B}[2J\u{202E}" + String(repeating: "x", count: 5000)
    var message = CodecMessage()
    (message["says"], message["kind"], message["text"]) = ("failed", "corrupt", hostile)
    guard case .failed(.corrupt(let text)) = CodecReply(message) else { return #expect(Bool(false)) }
    #expect(text.count == 200 && text.unicodeScalars.allSatisfy { (32...126).contains($0.value) })
  }
}

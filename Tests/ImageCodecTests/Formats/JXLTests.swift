import Foundation
import ImageCodec
import Testing

/// JPEG XL files that libjxl's cjxl made of gradients in each channel.
struct JXLTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  private static func file(_ text: String) -> [UInt8] { [UInt8](Data(base64Encoded: text)!) }

  /// 24 x 20; alpha equals red.
  static let lossless = file(
    "/wqYILCguBAICBAAWAFLGJOOhYMpEcWG12NDGGOwUowxNqCoMMZg2QsIBWAz7RuB6r6vqKIKTAQAAHAF6KOa/2d91bXI+mRbeo/2EtXtO1EpMZGf"
      + "lMHUvarZWMrUvarpWMpxAA==")
  static let lossy = file(
    "/wqYILChuBAASIAoAIgDXeUSAAAVKqOMG7yc6/nyQ4fFtI3rDG21bWFJ4hiZt3IBXr1UYMiBDAoPM4MUFMhxPGeM8WLGYJXYAMcYGYODMTJG0oiM"
      + "jGa0HH1iuV0BAE51AMA4M8YYT45j7D39uPfe/7mTJEk++5Mkw6T8MwzDaKf+f37Wr4xgjrT17W3bh/X/P9v/+PPdxP8/zn8/M+opE+d4FQCxiRq6"
      + "uImYBmkgCJsBpW4AEs4U/AUAAAQeEFAoErSvQgrkWZYkxUjGyMjYGMkY2fhxOUAXqQzvhoAH4+76IZMT7GgpJ9CBIXut6ALXPw==")
  /// 64 x 40, red, green and blue.
  static let animation = file(
    "/woJjmAAAcUlAQgCkgkAAGQASxiLFQDUE2Mwfi4QAQAgUWUAIIF/v2QuGggCIgsAAFAASxiLFYBd+P8CEQCsZ1Y5+OOg9wMIArMEAAAEAEwASxiL"
      + "FYBd/P8CEQAgVAgAAHz5Aw==")

  @Test(arguments: [lossless, lossy]) func `an image is read with its alpha`(file: [UInt8]) async throws {
    guard await reads() else { return }
    #expect(try Decoding.header(file) == ImageHeader(.jxl, width: 24, height: 20))
    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height, pixels.channels) == (24, 20, 4))
    // From 0 at the top to 255; blue from the bottom.
    #expect(isNear(pixels[12, 15], [198, 198, 57, 198], within: 10))
    let (decoded, _) = try await decoding.encoded(file, .with { $0.width = 12 })
    #expect((decoded.format, decoded.width, decoded.height) == (.png, 12, 10))
  }

  @Test func `an animation is refused, so that no wrong frame is shown`() async throws {
    guard await reads() else { return }
    let outcome = await decoding.run(try decoding.task(Self.animation, .check))
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `an image that may exceed the memory limit is refused`() async throws {
    guard await reads() else { return }
    let small = try Decoding(memory: 300 << 20)
    var task = try small.task(Self.lossless, .check)
    task.source = .bytes(Build.jxl([(0, 1), (1, 2), (2999, 13), (1, 3), (1, 1)]))
    let outcome = await small.run(task)
    guard case .failure(.outOfMemory) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `an image that is truncated anywhere is corrupt`() async throws {
    guard await reads() else { return }
    for length in 12..<Self.lossless.count {
      var task = try decoding.task(Self.lossless, .check)
      task.source = .bytes(Array(Self.lossless.prefix(length)))
      let outcome = await decoding.run(task)
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(length): \(outcome)") }
    }
  }

  private func reads() async -> Bool {
    await withCheckedContinuation { continuation in decoding.pool.formats { continuation.resume(returning: $0) } }
      .decode.contains(.jxl)
  }
}

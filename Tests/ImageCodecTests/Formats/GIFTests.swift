import ImageCodec
import Testing

/// GIFs as browsers show them.
struct GIFTests {
  private let decoding: Decoding
  private let red: (UInt8, UInt8, UInt8) = (255, 0, 0)
  private let green: (UInt8, UInt8, UInt8) = (0, 255, 0)

  init() throws { decoding = try .shared() }

  @Test func `a later frame that reaches beyond the screen is cut`() async throws {
    let places = [(x: 0, y: 0, width: 8, height: 8), (x: 4, y: 4, width: 300, height: 300), (9, 9, 1, 1)]
    let gif = Pictures.gif(8, 8, colors: [red, green, red], places: places)
    let header = try Decoding.header(gif)
    #expect((header.width, header.height, header.frames) == (8, 8, 3))
    #expect(try await decoding.run(try decoding.task(gif, .check)).get().notes == [])
    let (all, webp) = try await decoding.encoded(gif, .with { $0.frames = .all })
    #expect((all.width, all.height, all.frames) == (8, 8, 3))
    #expect(try Decoding.header(webp).width == 8)
  }

  @Test func `a later frame of the maximum size does not enlarge the image`() async throws {
    var gif = Pictures.gif(8, 8, colors: [red, green])
    let second = try #require(gif.lastIndex(of: 0x2C))
    gif.replaceSubrange((second + 5)..<(second + 9), with: [0xFF, 0xFF, 0xFF, 0xFF])
    let (all, _) = try await decoding.encoded(gif, .with { $0.frames = .all })
    #expect((all.width, all.height) == (8, 8))
    #expect(all.notes == .damaged, "it has 64 pixels, and not 65535 x 65535")
  }

  @Test func `pixels that no frame covers are transparent even if no colour is`() async throws {
    let gif = Pictures.gif(4, 4, colors: [red], x: 2, y: 2, screen: (8, 8))
    let pixels = try await decoding.pixels(gif)
    #expect(pixels[0, 0] == [0, 0, 0, 0] && pixels[7, 7] == [0, 0, 0, 0] && pixels[3, 3] == [255, 0, 0, 255])
    #expect(try await decoding.encoded(gif).0.format == .png)
  }

  @Test func `an opaque picture has no alpha`() async throws {
    #expect(try await decoding.pixels(Pictures.gif(4, 4, colors: [red])).channels == 3)
    #expect(try await decoding.pixels(Pictures.gif(4, 4, colors: [red], isTransparent: true)).channels == 3)
  }

  @Test func `a frame with a delay of 0 is shown for a tenth of a second`() async throws {
    for (delay, shown) in [(0, 100), (1, 100), (2, 20), (7, 70)] {
      let gif = Pictures.gif(4, 4, colors: [red, green], delay: delay)
      let webp = try await decoding.encoded(gif, .with { $0.frames = .all }).1
      let frame = try #require(webp.indices.dropLast(24).first { Array(webp[$0..<($0 + 4)]) == Build.text("ANMF") })
      #expect(Int(webp[frame + 20]) | Int(webp[frame + 21]) << 8 == shown)
    }
  }

  @Test func `a frame whose data ends early is damaged and fails the check`() async throws {
    let whole = Pictures.gif(20, 10, colors: [red])
    // The picture has more rows than its data provides.
    var gif = whole
    let frame = try #require(gif.lastIndex(of: 0x2C))
    (gif[frame + 7], gif[8]) = (20, 20)
    #expect(try await decoding.encoded(gif, .with { $0.format = .png }).0.notes == .damaged)
    let pixels = try await decoding.pixels(gif)
    #expect(pixels[5, 9] == [255, 0, 0, 255] && pixels[5, 10] == [0, 0, 0, 0])
    let outcome = await decoding.run(try decoding.task(gif, .check))
    #expect(outcome == .failure(.corrupt("the data of a frame is incomplete")))
    #expect(try await decoding.run(try decoding.task(whole, .check)).get().notes == [])
  }

  @Test(arguments: [0, 9, 12, 255]) func `an invalid code size is corrupt`(size: UInt8) async throws {
    var gif = Pictures.gif(4, 4, colors: [red])
    gif[try #require(gif.lastIndex(of: 0x2C)) + 10] = size
    let outcome = await decoding.run(try decoding.task(gif, .pixels(decoding.newPath())))
    guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `a picture without colours is black`() async throws {
    let file =
      Build.text("GIF89a") + Build.little16(2) + Build.little16(1) + [0, 0, 0, 0x2C, 0, 0, 0, 0] + Build.little16(2)
      + Build.little16(1) + [0, 2, 2, 0x4C, 0x0A, 0, 0x3B]
    #expect(try await decoding.pixels(file)[0, 0] == [0, 0, 0])
  }

  @Test func `all frames count towards the pixel limit`() async throws {
    let gif = Pictures.gif(10, 10, colors: [(UInt8, UInt8, UInt8)](repeating: red, count: 50))
    for output in [DecodeTask.Output.check, .encoded(decoding.newPath())] {
      var task = try decoding.task(gif, output, .with { $0.frames = .all }, maxPixels: 4999)
      task.header = ImageHeader(.gif, width: 10, height: 10)
      let outcome = await decoding.run(task)
      guard case .failure(.tooManyPixels) = outcome else { return #expect(Bool(false), "\(outcome)") }
    }
  }
}

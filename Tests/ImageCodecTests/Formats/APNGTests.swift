import ImageCodec
import Testing

/// Animated PNGs as browsers show them, and harmful ones.
struct APNGTests {
  private let decoding: Decoding

  init() throws { decoding = try .shared() }

  /// An animation of frames in one colour each.
  struct Animation {
    var size = (width: 8, height: 8)
    var frames: [Frame]
    /// The number in acTL; nil for the number of frames.
    var announced: Int?
    var plays = 0
    /// Whether a blue still image precedes the frames without being one of them.
    var hasOtherStill = false

    struct Frame {
      var color: [UInt8]
      var place = (x: 0, y: 0, width: 8, height: 8)
      var delay = (10, 100)
      var disposal: UInt8 = 0
      var isBlended = false
      /// Replaces the data that follows from colour and size.
      var data: [UInt8]?
    }

    var file: [UInt8] {
      var sequence = 0
      func number() -> [UInt8] {
        defer { sequence += 1 }
        return Build.big32(sequence)
      }
      let header = Build.big32(size.width) + Build.big32(size.height) + [8, 6, 0, 0, 0]
      var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Build.chunk("IHDR", header)
      file += Build.chunk("acTL", Build.big32(announced ?? frames.count) + Build.big32(plays))
      if hasOtherStill { file += Build.chunk("IDAT", Self.data([0, 0, 255, 255], size.width, size.height)) }
      for (index, frame) in frames.enumerated() {
        let (x, y, width, height) = frame.place
        file += Build.chunk(
          "fcTL",
          number() + [width, height, x, y].flatMap { Build.big32($0) } + Build.big16(frame.delay.0)
            + Build.big16(frame.delay.1) + [frame.disposal, frame.isBlended ? 1 : 0])
        let data = frame.data ?? Self.data(frame.color, width, height)
        let isStill = index == 0 && !hasOtherStill
        file += isStill ? Build.chunk("IDAT", data) : Build.chunk("fdAT", number() + data)
      }
      return file + Build.chunk("IEND", [])
    }

    static func data(_ color: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
      let png = Pictures(width: width, height: height, samples: 4) { _, _ in color.map { Int($0) } }.png()
      let start = png.indices.first { Array(png[$0...].prefix(4)) == Build.text("IDAT") }!
      let length = png[(start - 4)..<start].reduce(0) { $0 << 8 | Int($1) }
      return Array(png[(start + 4)..<(start + 4 + length)])
    }
  }

  private static let red: [UInt8] = [255, 0, 0, 255]
  private static let green: [UInt8] = [0, 255, 0, 255]

  @Test func `all frames become an animation with the same delays`() async throws {
    let animation = Animation(
      frames: [
        .init(color: Self.red, delay: (1, 2)), .init(color: Self.green, delay: (0, 100)),
        .init(color: Self.red, place: (2, 2, 4, 4), delay: (30, 0)),
      ], plays: 3)
    let file = animation.file
    #expect(try Decoding.header(file).frames == 3)
    let (all, webp) = try await decoding.encoded(file, .with { $0.frames = .all })
    #expect((all.frames, all.width, all.height, all.format) == (3, 8, 8, .webp))
    let header = try Decoding.header(webp)
    #expect((header.frames, header.width, header.height) == (3, 8, 8))
    let starts = webp.indices.dropLast(24).filter { Array(webp[$0..<($0 + 4)]) == Build.text("ANMF") }
    #expect(starts.map { Int(webp[$0 + 20]) | Int(webp[$0 + 21]) << 8 } == [500, 100, 300])
    let still = try await decoding.encoded(file).0
    #expect(still.format == .png && still.frames == 1)
    #expect(try await decoding.run(try decoding.task(file, .check)).get().notes == [])
  }

  /// PNG, third edition, section 12.6.2. Lossy WebP changes a single colour only slightly.
  @Test(arguments: [(true, [85, 0, 170, 192]), (false, [0, 0, 255, 128])])
  func `a frame is blended with the previous content or replaces it`(isBlended: Bool, expected: [Int]) async throws {
    let frames = [Animation.Frame(color: [255, 0, 0, 128]), .init(color: [0, 0, 255, 128], isBlended: isBlended)]
    let webp = try await decoding.encoded(Animation(frames: frames).file, .with { $0.frames = .all }).1
    let start = try #require(webp.indices.dropLast(24).last { Array(webp[$0..<($0 + 4)]) == Build.text("ANMF") })
    let extended = Build.text("VP8X") + Build.little32(10) + [0x10, 0, 0, 0, 7, 0, 0, 7, 0, 0]
    let still = Build.text("WEBP") + extended + webp[(start + 24)...]
    let pixels = try await decoding.pixels(Build.text("RIFF") + Build.little32(still.count) + still)
    #expect(isNear(pixels[4, 4], expected, within: 4))
  }

  @Test func `the first frame is shown instead of a still image that is not a frame`() async throws {
    let frames = [Animation.Frame(color: Self.red, place: (0, 0, 4, 8)), .init(color: Self.green)]
    let pixels = try await decoding.pixels(Animation(frames: frames, hasOtherStill: true).file)
    #expect(pixels[1, 1] == [255, 0, 0, 255] && pixels[6, 6] == [0, 0, 0, 0])
  }

  @Test(arguments: [1, 2_147_483_649, 4_294_967_295])
  func `the number of frames in acTL is not trusted`(announced: Int) async throws {
    let frames = [Animation.Frame(color: Self.red), .init(color: Self.green)]
    let file = Animation(frames: frames, announced: announced).file
    #expect(try Decoding.header(file).frames == min(2, announced))
    #expect(try await decoding.encoded(file, .with { $0.frames = .all }).0.frames == min(2, announced))
  }

  @Test func `an animation without frames is a still image`() async throws {
    let file = Animation(frames: [], announced: 7, hasOtherStill: true).file
    #expect(try Decoding.header(file).frames == 1)
    let outcome = await decoding.run(try decoding.task(file, .pixels(decoding.newPath())))
    guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  private static let whole = Animation(
    frames: [.init(color: red), .init(color: green, place: (2, 2, 4, 4)), .init(color: red)])

  enum Harm: CaseIterable {
    case outside, isEmpty, sequence, checksum, cut, noData, hugeFrame

    func done() -> [UInt8] {
      var animation = APNGTests.whole
      switch self {
      case .outside: animation.frames[1].place.x = 5
      case .hugeFrame, .isEmpty, .sequence, .checksum, .cut, .noData: break
      }
      var file = animation.file
      let second = file.indices.dropLast(4).filter { Array(file[$0..<($0 + 4)]) == Build.text("fcTL") }[1]
      let whole = (second - 4)..<(second + 34)
      let control = Array(file[whole])
      switch self {
      case .outside: break
      case .hugeFrame: file.replaceSubrange(whole, with: Self.control(control, 8, [0x7F, 0xFF, 0xFF, 0xFF]))
      case .isEmpty: file.replaceSubrange(whole, with: Self.control(control, 8, [0, 0, 0, 0]))
      case .sequence: file.replaceSubrange(whole, with: Self.control(control, 4, [0, 0, 0, 0]))
      case .checksum: file[file.count - 20] ^= 1
      case .cut: file.removeLast(40)
      // The next frame's control follows.
      case .noData:
        let length = APNGTests.lengthOfChunk(in: file, at: whole.upperBound)
        file.removeSubrange(whole.upperBound..<(whole.upperBound + 12 + length))
      }
      return file
    }

    /// Replaces bytes at an offset of a frame's control chunk.
    private static func control(_ chunk: [UInt8], _ place: Int, _ bytes: [UInt8]) -> [UInt8] {
      var content = Array(chunk[8..<34])
      content.replaceSubrange((place - 4)..<(place - 4 + bytes.count), with: bytes)
      return Build.chunk("fcTL", content)
    }
  }

  static func lengthOfChunk(in file: [UInt8], at place: Int) -> Int {
    file[place..<(place + 4)].reduce(0) { $0 << 8 | Int($1) }
  }

  @Test(arguments: Harm.allCases) func `an invalid animation is corrupt`(harm: Harm) async throws {
    let file = harm.done()
    for output in [DecodeTask.Output.check, .encoded(decoding.newPath())] {
      var task = try decoding.task(file, output, .with { $0.frames = .all })
      task.header = ImageHeader(.png, width: 8, height: 8, frames: 3)
      let outcome = await decoding.run(task)
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(harm): \(outcome)") }
    }
  }

  @Test(arguments: [8, 400], [0, 1])
  func `a frame that inflates to far more than its rows is refused, or inflated for its rows only`(side: Int, bomb: Int)
    async throws
  {
    let bytes = PNGReaderTests.zeros(64 << 20)
    var animation = Animation(size: (side, side), frames: [.init(color: Self.red), .init(color: Self.green)])
    for index in 0..<2 { animation.frames[index].place = (0, 0, side, side) }
    let harmless = animation.file
    animation.frames[bomb].data = bytes
    for output in [DecodeTask.Output.check, .encoded(decoding.newPath())] {
      let task = try decoding.task(animation.file, output, .with { $0.frames = .all })
      let outcome = await decoding.run(task)
      if side == 8 {
        #expect(outcome == .failure(.corrupt("the image is damaged (rows: the PNG has data beyond its pixels)")))
      } else {
        #expect(try outcome.get().sourceWidth == side)
      }
    }
    #expect(try await decoding.run(try decoding.task(harmless, .check)).get().sourceWidth == side)
  }

  @Test func `all frames count towards the pixel limit`() async throws {
    let file = Animation(frames: [Animation.Frame](repeating: .init(color: Self.red), count: 50)).file
    for output in [DecodeTask.Output.check, .encoded(decoding.newPath())] {
      let refused = try decoding.task(file, output, .with { $0.frames = .all }, maxPixels: 3199)
      guard case .failure(.tooManyPixels) = await decoding.run(refused) else { return #expect(Bool(false)) }
      // The decoder counts the frames itself.
      var task = refused
      task.header = ImageHeader(.png, width: 8, height: 8)
      guard case .failure(.tooManyPixels) = await decoding.run(task) else { return #expect(Bool(false)) }
    }
  }
}

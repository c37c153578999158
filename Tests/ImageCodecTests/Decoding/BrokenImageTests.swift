import Foundation
import ImageCodec
import Testing

/// The results of hostile and broken files.
struct BrokenImageTests {
  @Test func `a header with too many pixels is refused without a decoder`() async throws {
    let decoding = try Decoding()
    let bomb = Build.jpeg(65_500, 65_500)
    let outcome = await decoding.run(try decoding.task(bomb, .check))
    guard case .failure(.tooManyPixels) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(decoding.pool.statistics.running == 0)
  }

  @Test func `the decoder checks the size itself before it decodes`() async throws {
    let decoding = try Decoding()
    let bomb = Pictures(width: 4000, height: 1, samples: 1) { _, _ in [0] }.png()
    var task = try decoding.task(bomb, .pixels(decoding.newPath()), maxPixels: 3999)
    task.header = ImageHeader(.png, width: 10, height: 10)
    let outcome = await decoding.run(task)
    guard case .failure(.tooManyPixels) = outcome else { return #expect(Bool(false), "\(outcome)") }
    // The size of the result is limited as well.
    let large = try decoding.task(
      bomb, .pixels(decoding.newPath()),
      .with { ($0.width, $0.height, $0.fit, $0.enlarge) = (5000, 5000, .fill, true) }, maxPixels: 1_000_000)
    let second = await decoding.run(large)
    guard case .failure(.tooManyPixels) = second else { return #expect(Bool(false), "\(second)") }
  }

  @Test func `a PNG that goes on after its pixels is refused before it is inflated`() async throws {
    let decoding = try Decoding()
    var file = Pictures.quarters(8, 8).png()
    file.insert(contentsOf: Build.chunk("IDAT", [UInt8](repeating: 0, count: 20_000)), at: file.count - 12)
    let outcome = await decoding.run(try decoding.task(file, .check))
    #expect(outcome == .failure(.corrupt("the image is damaged (the PNG has data beyond its pixels)")))
  }

  @Test func `a JPEG of too many scans is refused before the first`() async throws {
    let decoding = try Decoding()
    let scan = Build.segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0x34]
    let end: [UInt8] = [0xFF, 0xD9]
    // Progressive, sequential, and with a comment whose length is below 2, which libjpeg skips.
    let beginnings = [
      Build.jpeg(64, 64, frame: 0xC2), Build.jpeg(64, 64, frame: 0xC0),
      Build.jpeg(64, 64, frame: 0xC2).replacing([0xFF, 0xDA], with: [0xFF, 0xFE, 0, 0, 0xFF, 0xDA]),
    ]
    for beginning in beginnings {
      for (scans, isRefused) in [(100, false), (101, true)] {
        // The file already has an end marker.
        let file = beginning.dropLast(2) + Array(repeating: scan, count: scans - 1).joined() + end
        let outcome = await decoding.run(try decoding.task(Array(file), .check))
        #expect((outcome == .failure(.corrupt("the JPEG has more than 100 scans"))) == isRefused, "\(outcome)")
      }
    }
  }

  @Test func `a PNG is decoded without its compressed text`() async throws {
    let decoding = try Decoding()
    let picture = Pictures.quarters(8, 8)
    let text = ["zTXt", "tEXt", "iTXt", "zTXt"].flatMap { Build.chunk($0, Build.text("a\0\0this is not deflated")) }
    let file = picture.png(extraChunks: text)
    #expect(try await decoding.pixels(file) == decoding.pixels(picture.png()))
    let outcome = await decoding.run(try decoding.task(Array(file.dropLast(30)), .check))
    guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif])
  func `a truncated file is corrupt, but a JPEG gives a preview`(format: ImageFormat) async throws {
    let decoding = try Decoding()
    let whole = try await decoding.encoded(Pictures.waves(300, 200).png(), as: format)
    let cut = Array(whole.prefix(whole.count * 2 / 3))
    for output in [DecodeTask.Output.check, .pixels(decoding.newPath()), .encoded(decoding.newPath())] {
      let outcome = await decoding.run(try decoding.task(cut, output))
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(output): \(outcome)") }
    }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: decoding.directory).filter { !$0.hasSuffix("keep") }.count
        == 1)
    guard format == .jpeg else { return }
    let preview = try await decoding.run(try decoding.task(cut, .preview(decoding.newPath(), maxSide: 100))).get()
    #expect((preview.width, preview.height) == (100, 67))
  }

  @Test func `a truncated animation is corrupt if all its frames are decoded`() async throws {
    let decoding = try Decoding()
    let whole = Pictures.gif(60, 40, colors: [(255, 0, 0), (0, 255, 0), (0, 0, 255)])
    for count in [whole.count * 9 / 10, whole.count / 2] {
      let cut = Array(whole.prefix(count))
      for (output, frames) in [
        (DecodeTask.Output.check, Transform.Frames.first), (.encoded(decoding.newPath()), .all),
      ] {
        let outcome = await decoding.run(try decoding.task(cut, output, .with { $0.frames = frames }))
        guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(output): \(outcome)") }
      }
    }
    // Without the last byte nothing is missing.
    _ = try await decoding.run(try decoding.task(Array(whole.dropLast()), .check)).get()
  }

  @Test func `a JPEG that lacks pixels does not decode completely, whatever follows its data`() async throws {
    let decoding = try Decoding()
    let whole = try await decoding.encoded(Pictures.waves(300, 200).png(), as: .jpeg)
    let short = Array(whole.prefix(whole.count / 2)) + [0xFF, 0xD9]
    let checked = await decoding.run(try decoding.task(short, .check))
    guard case .failure(.corrupt) = checked else { return #expect(Bool(false), "\(checked)") }
    #expect(try await decoding.pixels(short).width == 300, "what is there can be shown")
  }

  @Test func `a narrow image of very many rows is decoded quickly`() async throws {
    let decoding = try Decoding(timeout: .seconds(60))
    let tall = Pictures(width: 1, height: 800_000, samples: 1) { _, _ in [7] }.png()
    #expect(try await decoding.run(try decoding.task(tall, .check)).get().sourceHeight == 800_000)
  }

  @Test func `an image is not decoded as another format than the requested one`() async throws {
    let decoding = try Decoding()
    var task = try decoding.task(Pictures.quarters(8, 8).png(), .check)
    for format in [ImageFormat.jpeg, .gif, .webp, .tiff, .avif, .bmp, .ico] {
      task.header = ImageHeader(format, width: 8, height: 8)
      let outcome = await decoding.run(task)
      guard case .failure(let error) = outcome else { return #expect(Bool(false), "\(format)") }
      #expect(error != .crashed && !error.isTimeout)
    }
  }

  @Test(arguments: [ImageFormat.jp2])
  func `formats that are not supported are refused without a decoder`(format: ImageFormat) async throws {
    let decoding = try Decoding()
    var task = try decoding.task(Pictures.quarters(8, 8).png(), .check)
    task.header = ImageHeader(format, width: 8, height: 8)
    let outcome = await decoding.run(task)
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(decoding.pool.statistics.running == 0)
  }

  @Test func `a TIFF with samples that libvips does not support is unsupported`() async throws {
    let decoding = try Decoding()
    let tags = [
      (256, 4, 4), (257, 4, 4), (258, 3, 64), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 4, 4),
      (279, 4, 128),
    ]
    let file = Build.tiff(tags.map { (tag: $0.0, type: $0.1, value: $0.2) }) + [UInt8](repeating: 0, count: 128)
    let outcome = await decoding.run(try decoding.task(file, .check))
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `a decoder survives an image that exceeds its memory limit`() async throws {
    let decoding = try Decoding(memory: 150 << 20)
    // Rotated, the image needs all its pixels in memory.
    var file = try await Decoding().encoded(
      Pictures.quarters(32, 32).png(),
      .with {
        ($0.format, $0.width, $0.height, $0.fit, $0.enlarge) = (.jpeg, 8000, 8000, .fill, true)
      }
    ).1
    file.insert(contentsOf: Build.jpegEXIF(6), at: 2)
    let outcome = await decoding.run(try decoding.task(file, .pixels(decoding.newPath())))
    #expect(throws: DecodeError.self) { try outcome.get() }
    if case .failure(let error) = outcome { #expect(!error.isTimeout) }
    let after = try await decoding.run(try decoding.task(Pictures.quarters(32, 32).png(), .check)).get()
    #expect(after.sourceWidth == 32)
  }

  @Test func `an AVIF is not written if the encoder runs out of memory`() async throws {
    let decoding = try Decoding(memory: 150 << 20)
    let task = try decoding.task(
      Pictures.quarters(8, 8).png(), .encoded(decoding.newPath()),
      .with { ($0.format, $0.width, $0.height, $0.fit, $0.enlarge) = (.avif, 3000, 3000, .fill, true) })
    let outcome = await decoding.run(task)
    guard case .failure(.outOfMemory) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `a file that cannot be written or read is an io error`() async throws {
    let decoding = try Decoding()
    let image = Pictures.quarters(8, 8).png()
    let existing = decoding.newPath()
    try Data("mine".utf8).write(to: URL(filePath: existing))
    let outcome = await decoding.run(try decoding.task(image, .encoded(existing)))
    guard case .failure(.io) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(try Data(contentsOf: URL(filePath: existing)) == Data("mine".utf8))
    var task = try decoding.task(image, .check)
    task.source = .file("/nonexistent/image.png")
    let second = await decoding.run(task)
    guard case .failure(.io) = second else { return #expect(Bool(false), "\(second)") }
  }

  /// Files of each format, each broken somewhere: each has exactly one answer (a second would trap), none hangs, and no
  /// file is left.
  @Test func `hundreds of broken images of each format are each answered once`() async throws {
    let decoding = try Decoding(count: 2, lifetime: 500)
    let picture = Pictures.waves(48, 40).png()
    var seeds = [picture, Pictures.waves(40, 30).tiff(), Pictures.gif(20, 20, colors: [(255, 0, 0), (0, 99, 0)])]
    for format in [ImageFormat.jpeg, .webp, .avif] {
      seeds.append(try await decoding.encoded(picture, as: format, quality: 60))
    }
    let rows = (0..<20).map { y in (0..<72).map { x in UInt8(x * y & 255) } }
    let bitmap = Bitmap(width: 24, height: 20, bits: 24, rows: rows)
    let runs: [UInt8] = [9, 1, 0, 3, 2, 3, 2, 0, 0, 0, 0, 2, 1, 1, 9, 3, 0, 1]
    let compressed = Bitmap(
      width: 20, height: 9, bits: 8, compression: 1, colors: Array(repeating: [1, 2, 3], count: 9), content: runs)
    let icon = Bitmap.icon([
      (24, 20, 24, bitmap.inIcon(mask: Array(repeating: [1, 2, 3], count: 20))), (16, 16, 32, picture),
    ])
    seeds += [bitmap.file, compressed.file, icon, JXLTests.lossless, JXLTests.lossy]
    let rounds = 300
    var answers = 0
    var generator = SeededGenerator(state: 20_261_121)
    for seed in seeds {
      let header = try Decoding.header(seed)
      var tasks: [DecodeTask] = []
      for index in 0..<rounds {
        let output: DecodeTask.Output =
          [.check, .placeholder, .pixels(decoding.newPath()), .encoded(decoding.newPath())][index % 4]
        var task = try decoding.task(seed, output, .with { $0.width = 16 }, maxPixels: 4_000_000)
        task.source = .bytes(generator.broken(seed))
        // The header as the worker would have read it; if it cannot be read, the worker would not create the task.
        task.header = header
        tasks.append(task)
      }
      answers += await withTaskGroup(of: Int.self) { group in
        for task in tasks {
          group.addTask {
            if case .failure(.unavailable) = await decoding.run(task) { return 0 }
            return 1
          }
        }
        return await group.reduce(0, +)
      }
    }
    #expect(answers == seeds.count * rounds)
    let statistics = decoding.pool.statistics
    #expect(statistics.decoded + statistics.failed == seeds.count * rounds + 3)
    let left = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
      return target?.contains(decoding.directory) == true
    }
    #expect(left.isEmpty)
    decoding.pool.shutDown()
    #expect(decoding.pool.statistics.running == 0)
  }
}

struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }

  mutating func broken(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    for _ in 0..<Int.random(in: 1...8, using: &self) {
      let place = Int.random(in: 8..<result.count, using: &self)
      switch Int.random(in: 0..<5, using: &self) {
      case 0: result[place] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 1: result[place] = [0, 255, 127, 128].randomElement(using: &self) ?? 0
      case 2: result[place] = .random(in: 0...255, using: &self)
      case 3: result.insert(.random(in: 0...255, using: &self), at: place)
      default: if result.count > 64 { result.removeSubrange(place..<min(place + 16, result.count)) }
      }
      if result.count < 16 { break }
    }
    return result
  }
}

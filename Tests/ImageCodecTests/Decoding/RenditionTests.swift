import Foundation
import Testing

@testable import ImageCodec

/// Several files from one decode.
struct RenditionTests {
  private let decoding = try! Decoding.shared()
  /// Decodes every image with `imageworker-codec`.
  private let large = try! Decoding(executable: try! DecoderExecutable.find())
  private static let hills = Pictures.hills(400, 300).png()

  private func files(
    _ bytes: [UInt8], _ set: RenditionSet, placeholder: Bool = false, in decoding: Decoding
  ) async throws -> (Decoded, [[UInt8]]) {
    let path = decoding.newPath()
    let decoded = try await decoding.run(
      try decoding.task(bytes, .renditions(set, path), placeholder: placeholder)
    ).get()
    var content = set.renditions.isEmpty ? Data() : try Data(contentsOf: URL(filePath: path))
    let files = decoded.renditions.map { file in
      defer { content = content.dropFirst(file.bytes) }
      return [UInt8](content.prefix(file.bytes))
    }
    #expect(content.isEmpty)
    return (decoded, files)
  }

  private func set(_ changes: [(inout Transform) -> Void]) -> RenditionSet {
    RenditionSet(changes.map { Rendition(transform: .with($0)) })
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp], [1, 6])
  func `both decoders make the same files, and the largest as it is made alone`(
    format: ImageFormat, orientation: Int
  ) async throws {
    var file = try await large.encoded(Self.hills, as: format)
    if format == .jpeg { file.insert(contentsOf: Build.jpegEXIF(orientation), at: 2) }
    let set = set([
      { ($0.width, $0.height, $0.format) = (90, 90, .jpeg) }, { $0.width = 240 },
      { ($0.width, $0.format) = (200, .png) },
      { ($0.width, $0.height, $0.fit) = (30, 30, .cover) },
      { ($0.crop, $0.width) = (.init(x: 8, y: 8, width: 64, height: 64), 32) },
      { ($0.width, $0.isOriented) = (60, false) },
    ])
    #expect(try large.task(file, .renditions(set, "a")).libraries == .plain)
    let (decoded, plain) = try await files(file, set, in: decoding)
    let (told, other) = try await files(file, set, in: large)
    #expect(decoded == told && plain == other)
    // These come from the file itself; the others are made from the second.
    for index in [1, 2, 4] {
      #expect(plain[index] == (try await large.encoded(file, set.renditions[index].transform).1), "\(index)")
    }
    for (index, rendition) in set.renditions.enumerated() {
      let alone = try await large.pixels(try await large.encoded(file, rendition.transform).1)
      let made = try await large.pixels(plain[index])
      #expect(made.width == alone.width && made.height == alone.height && made.meanDifference(from: alone) < 8)
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .gif])
  func `two boxes around a small image have the same file, unless more than the box differs`(
    format: ImageFormat
  ) async throws {
    let file = try await large.encoded(Self.hills, as: format)
    let set = set([
      { ($0.width, $0.format) = (4000, .jpeg) }, { ($0.width, $0.format) = (2000, .jpeg) },
      { ($0.width, $0.format, $0.quality) = (3000, .jpeg, 30) }, { ($0.width, $0.format) = (3000, .webp) },
      { ($0.width, $0.format) = (80, .jpeg) },
    ])
    let (_, made) = try await files(file, set, in: decoding)
    #expect(made[0] == made[1] && Set(made).count == made.count - 1)
    for index in [0, 2, 3] {
      #expect(made[index] == (try await decoding.encoded(file, set.renditions[index].transform).1))
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .gif])
  func `nothing smaller is made from an enlarged picture`(format: ImageFormat) async throws {
    let file = try await large.encoded(Self.hills, as: format)
    let set = set([
      { ($0.width, $0.format, $0.enlarge) = (900, .webp, true) }, { ($0.width, $0.format) = (300, .png) },
    ])
    let (_, made) = try await files(file, set, in: decoding)
    for index in [0, 1] {
      #expect(made[index] == (try await decoding.encoded(file, set.renditions[index].transform).1))
    }
  }

  @Test(arguments: [ImageFormat.avif, .gif, .svg])
  func `any format is decoded once for all`(format: ImageFormat) async throws {
    let file: [UInt8]
    switch format {
    case .svg:
      file = Array(#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><circle r="9"/></svg>"#.utf8)
    default: file = try await large.encoded(Self.hills, as: format)
    }
    let set = set([
      { ($0.width, $0.format) = (32, .png) }, { ($0.width, $0.format) = (16, .webp) }, { $0.format = .jpeg },
    ])
    var full = set
    (full.checks, full.facts) = (true, [.perceptualHash])
    let (decoded, made) = try await files(file, full, placeholder: true, in: decoding)
    #expect(made.count == 3 && decoded.facts.perceptualHash != nil && decoded.placeholder != nil)
    #expect(made[2] == (try await decoding.encoded(file, set.renditions[2].transform).1))
    let (nothing, none) = try await files(file, RenditionSet([], facts: [.perceptualHash], checks: true), in: decoding)
    #expect(nothing.facts == decoded.facts && none.isEmpty)
  }

  @Test func `a limit of bytes leads to the highest quality that fits`() async throws {
    let source = try await large.encoded(Self.hills, as: .jpeg)
    for format in [ImageFormat.jpeg, .webp, .avif] {
      let transform = Transform.with { $0.format = format }
      let usual = try await decoding.encoded(source, transform).1.count
      let limit = usual * 3 / 4
      let small = Rendition(transform: transform, maxBytes: limit, minQuality: 1)
      let roomy = Rendition(transform: transform, maxBytes: usual)
      let (decoded, made) = try await files(source, RenditionSet([small, roomy]), in: decoding)
      let quality = try #require(decoded.renditions[0].quality)
      #expect(made[0].count <= limit && quality < format.usualQuality)
      #expect(made[0] == (try await decoding.encoded(source, as: format, quality: quality)))
      #expect(decoded.renditions[1].quality == format.usualQuality && made[1].count == usual)
    }
  }

  @Test func `the rendition at fault is named`() async throws {
    let source = try await large.encoded(Self.hills, as: .jpeg)
    let good = Rendition(transform: .with { $0.width = 30 })
    let faults = [
      Rendition(transform: .with { $0.format = .webp }, maxBytes: 10),
      Rendition(transform: .with { $0.format = .png }, maxBytes: 10),
      Rendition(transform: .with { $0.crop = .init(x: 999, y: 0, width: 5, height: 5) }),
      Rendition(transform: .with { ($0.width, $0.enlarge, $0.format) = (17_000, true, .webp) }),
    ]
    for (index, fault) in faults.enumerated() {
      let task = try decoding.task(source, .renditions(RenditionSet([good, fault]), decoding.newPath()))
      guard case .failure(.ofRendition(1, let error)) = await decoding.run(task) else {
        Issue.record("fault \(index) is not named")
        continue
      }
      switch (index, error) {
      case (0, .tooLarge), (1, .tooLarge), (2, .cropOutside), (3, .tooManyPixels): break
      default: Issue.record("fault \(index): \(error)")
      }
    }
    // A broken image is the fault of none.
    let broken = Array(source.prefix(source.count / 2))
    let task = try decoding.task(broken, .renditions(RenditionSet([good, good]), decoding.newPath()))
    guard case .failure(.corrupt) = await decoding.run(task) else {
      Issue.record("the error must be corrupt")
      return
    }
  }

  @Test func `as many renditions as a message holds`() async throws {
    let source = try await large.encoded(Self.hills, as: .jpeg)
    let transform = Transform.with {
      ($0.crop, $0.width, $0.height) = (.init(x: 10, y: 10, width: 1_000_000_000, height: 1_000_000_000), 40, 40)
      ($0.fit, $0.focus, $0.format) = (.cover, .point(x: 0.123456789012345, y: 0.987654321098765), .jpeg)
      ($0.quality, $0.background) = (77, 0x123456)
    }
    let set = RenditionSet(
      [Rendition](
        repeating: Rendition(transform: transform, maxBytes: 1 << 40, minQuality: 10), count: RenditionSet.maxCount))
    let (decoded, made) = try await files(source, set, in: decoding)
    #expect(decoded.renditions.count == RenditionSet.maxCount && Set(made).count == 1)
  }

  @Test func `a GIF is written, with all frames of an animation`() async throws {
    let animation = try await decoding.encoded(
      Build.gif(8, 6, frames: 3, frameSize: (8, 6), colors: 4), .with { ($0.frames, $0.format) = (.all, .gif) }
    ).1
    let header = try Decoding.header(animation)
    #expect((header.format, header.frames, header.width) == (.gif, 3, 8))
    let still = try await decoding.encoded(Self.hills, .with { ($0.width, $0.format, $0.quality) = (40, .gif, 7) }).1
    #expect(try Decoding.header(still).frames == 1)
    let (made, _) = (try await decoding.pixels(still), ())
    #expect(made.meanDifference(from: try await decoding.pixels(Self.hills, .with { $0.width = 40 })) < 20)
  }
}

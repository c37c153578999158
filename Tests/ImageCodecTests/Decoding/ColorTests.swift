import Foundation
import ImageCodec
import Testing

/// Colours that a file declares, decoded by the real decoder.
struct ColorTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  enum Container: CaseIterable {
    case png, pngWithAlpha, jpeg, greyJPEG, webp
  }

  /// A file of one colour. Its profile, which has only the named tables, makes that colour neutral.
  private func file(_ container: Container, tags: [String]) async throws -> [UInt8] {
    let color = Pictures(width: 32, height: 32, samples: 3) { _, _ in [255, 0, 0] }
    let profile = Build.negativeProfile(
      container == .greyJPEG ? "GRAY" : "RGB ", channels: container == .greyJPEG ? 1 : 3, tags: tags)
    let chunk = Pictures.chunk("iCCP", Build.text("p\0") + [0] + Pictures.deflated(profile))
    let segment = Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + profile)
    switch container {
    case .png: return color.png(extraChunks: chunk)
    case .pngWithAlpha:
      return Pictures(width: 32, height: 32, samples: 4) { _, _ in [255, 0, 0, 200] }.png(extraChunks: chunk)
    case .jpeg:
      var file = try await decoding.encoded(color.png(), as: .jpeg)
      file.insert(contentsOf: segment, at: 2)
      return file
    case .greyJPEG:
      let dark = BlockJPEG(width: 32, height: 32, components: [.init(across: 1, down: 1) { _, _ in 85 }])
      return Array(dark.file[..<2]) + segment + dark.file[2...]
    case .webp:
      let plain = try await decoding.encoded(color.png(), as: .webp)
      return Build.riff(
        Build.webpChunk("VP8X", [0x20, 0, 0, 0] + Build.little24(31) + Build.little24(31))
          + Build.webpChunk("ICCP", profile) + plain[12...])
    }
  }

  /// L* is 66.7.
  private static let grey = 162

  @Test(arguments: Container.allCases, [["A2B0"], ["A2B1"], ["A2B0", "A2B1"]])
  func `lookup tables of a profile are applied`(container: Container, tags: [String]) async throws {
    let file = try await file(container, tags: tags)
    for width in [nil, 8] {
      let pixels = try await decoding.pixels(file, .with { $0.width = width })
      #expect(pixels[4, 4].prefix(3).allSatisfy { abs($0 - Self.grey) <= 3 }, "\(pixels[4, 4])")
    }
    let placeholder = try await decoding.run(try decoding.task(file, .placeholder)).get().placeholder
    let color = try #require(placeholder?.color)
    for shift in [0, 8, 16] { #expect(abs(Int(color >> shift & 255) - Self.grey) <= 3) }
  }

  @Test(arguments: [nil, 8]) func `an RGB profile is applied to grey`(width: Int?) async throws {
    let dark = BlockJPEG(width: 32, height: 32, components: [.init(across: 1, down: 1) { _, _ in 85 }])
    let profile = Build.negativeProfile("RGB ", channels: 3, tags: ["A2B0"])
    let segment = Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + profile)
    let pixels = try await decoding.pixels(dark.file[..<2] + segment + dark.file[2...], .with { $0.width = width })
    #expect(pixels.channels == 1)
    #expect(isNear(pixels[4, 4], [Self.grey], within: 3))
  }

  @Test(arguments: [8, 16]) func `the profile of a PNG with alpha is applied once`(depth: Int) async throws {
    let chunk = Pictures.chunk("iCCP", Build.text("p\0") + [0] + Pictures.deflated(Build.wideProfile()))
    let color = [40, 200, 90].map { $0 * (depth == 16 ? 257 : 1) }
    let opaque = Pictures(width: 9, height: 9, samples: 3, depth: depth) { _, _ in color }.png(extraChunks: chunk)
    let transparent = Pictures(width: 9, height: 9, samples: 4, depth: depth) { _, _ in color + [color[1]] }
      .png(extraChunks: chunk)
    for width in [nil, 4] {
      let expected = try await decoding.pixels(opaque, .with { $0.width = width })[2, 2]
      let pixels = try await decoding.pixels(transparent, .with { $0.width = width })
      #expect(isNear(Array(pixels[2, 2].prefix(3)), expected, within: 1))
      #expect(pixels[2, 2][3] == 200)
    }
  }

  @Test func `a preview has the colours of its profile`() async throws {
    let path = decoding.newPath()
    let file = try await file(.jpeg, tags: ["A2B0"])
    _ = try await decoding.run(try decoding.task(file, .preview(path, maxSide: 16))).get()
    let pixels = try await decoding.pixels([UInt8](try Data(contentsOf: URL(filePath: path))))
    #expect(isNear(pixels[8, 8], [Self.grey, Self.grey, Self.grey], within: 4))
  }

  @Test(arguments: [[], ["A2B0"]]) func `a truncated profile is ignored`(tags: [String]) async throws {
    let whole = Build.negativeProfile("RGB ", channels: 3, tags: tags)
    let picture = Pictures(width: 8, height: 8, samples: 3) { _, _ in [255, 0, 0] }
    let file = try await decoding.encoded(picture.png(), as: .jpeg)
    let expected = try await decoding.pixels(file)
    let segment = Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + whole.dropLast(40))
    #expect(try await decoding.pixels(file[..<2] + segment + file[2...]) == expected)
  }

  /// CMYK without a profile, and Chromium's result: 255 (1 - ink) (1 - black).
  private static let inks: [(cmyk: [Int], rgb: [Int])] = [
    ([0, 0, 0, 0], [255, 255, 255]), ([0, 0, 0, 255], [0, 0, 0]), ([255, 255, 255, 255], [0, 0, 0]),
    ([255, 0, 0, 0], [0, 255, 255]), ([0, 255, 255, 0], [255, 0, 0]), ([128, 64, 0, 51], [102, 153, 204]),
  ]

  @Test(arguments: [8, 16], [false, true])
  func `CMYK in a TIFF without a profile has a real black`(depth: Int, isSmaller: Bool) async throws {
    let scale = depth == 16 ? 257 : 1
    let picture = Pictures(width: 16 * Self.inks.count, height: 16, samples: 4, depth: depth) { x, _ in
      Self.inks[x / 16].cmyk.map { $0 * scale }
    }
    let pixels = try await decoding.pixels(picture.tiff(), .with { $0.width = isSmaller ? picture.width / 2 : nil })
    for (index, ink) in Self.inks.enumerated() {
      #expect(isNear(pixels[isSmaller ? 8 * index + 4 : 16 * index + 8, 4], ink.rgb, within: 1))
    }
  }

  /// Adobe stores inks inverted; browsers assume the same without its marker.
  @Test(arguments: [nil, 0, 2]) func `CMYK in a JPEG without a profile has a real black`(adobe: UInt8?) async throws {
    // One colour in 16 x 16 pixels. YCCK: luma and chroma of the inks before inversion.
    let samples = Self.inks.map { ink -> [Int] in
      let stored = ink.cmyk.map { 255 - $0 }
      guard adobe == 2 else { return stored }
      let (red, green, blue) = (Double(ink.cmyk[0]), Double(ink.cmyk[1]), Double(ink.cmyk[2]))
      let luma = 0.299 * red + 0.587 * green + 0.114 * blue
      return [luma, 128 + 0.564 * (blue - luma), 128 + 0.713 * (red - luma)].map { min(255, Int($0.rounded())) }
        + [stored[3]]
    }
    let picture = BlockJPEG(
      width: 16 * Self.inks.count, height: 16,
      components: (0..<4).map { index in .init(across: 1, down: 1) { x, _ in samples[x / 16][index] } })
    let marker = adobe.map { Build.segment(0xEE, Build.text("Adobe") + [0, 100, 0, 0, 0, 0, $0]) } ?? []
    let pixels = try await decoding.pixels(picture.file[..<2] + marker + picture.file[2...])
    for (index, ink) in Self.inks.enumerated() {
      #expect(isNear(pixels[16 * index + 8, 8], ink.rgb, within: 4), "\(ink)")
    }
  }
}

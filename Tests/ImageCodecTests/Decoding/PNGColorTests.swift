import ImageCodec
import Testing

/// Colours that a PNG declares without a profile, decoded by the real decoder and compared with Chromium 156.
struct PNGColorTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var chunks: [UInt8]
    var shown: [Int]

    init(_ name: String, _ chunks: [[UInt8]], _ shown: [Int]) {
      (testDescription, self.chunks, self.shown) = (name, chunks.flatMap { $0 }, shown)
    }
  }

  private static let stored = [119, 85, 39]

  private static func gamma(_ value: Int) -> [UInt8] { Pictures.chunk("gAMA", Build.big32(value)) }

  /// White, red, green and blue, in units of 0.00001.
  private static func chromaticities(_ values: [Int]) -> [UInt8] { Pictures.chunk("cHRM", values.flatMap(Build.big32)) }

  private static let standard = [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000]
  private static let p3 = [31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000]
  private static let swapped = [31270, 32900, 30000, 60000, 64000, 33000, 15000, 6000]

  private static func codePoints(_ numbers: UInt8...) -> [UInt8] { Pictures.chunk("cICP", numbers) }

  private static func intent(_ number: UInt8) -> [UInt8] { Pictures.chunk("sRGB", [number]) }

  private static let negative = Pictures.chunk(
    "iCCP",
    Build.text("p\0") + [0] + Pictures.deflated(Build.negativeProfile("RGB ", channels: 3, tags: ["A2B0"])))

  static let cases = [
    Case("gAMA 0.45455", [gamma(45455)], stored),
    Case("gAMA 0.47, which is near enough", [gamma(47000)], stored),
    Case("gAMA 0.4", [gamma(40000)], [108, 72, 24]),
    Case("gAMA 1", [gamma(100_000)], [182, 156, 109]),
    Case("gAMA 0", [gamma(0)], stored),
    Case("cHRM alone", [chromaticities(p3)], stored),
    Case("gAMA 0.45455 and cHRM of sRGB", [gamma(45455), chromaticities(standard)], [120, 84, 34]),
    Case("gAMA 0.45455 and cHRM of P3", [chromaticities(p3), gamma(45455)], [126, 82, 20]),
    Case("gAMA and cHRM with red and green exchanged", [gamma(45455), chromaticities(swapped)], [84, 120, 34]),
    Case(
      "gAMA 1 and cHRM without colours", [gamma(100_000), chromaticities([Int](repeating: 0, count: 8))],
      [182, 156, 109]),
    Case("sRGB before gAMA", [gamma(100_000), chromaticities(p3), intent(0)], stored),
    Case("sRGB with an intent that does not exist", [intent(9), gamma(100_000)], [182, 156, 109]),
    Case("iCCP before gAMA", [gamma(100_000), negative], [165, 165, 165]),
    Case("iCCP before sRGB", [intent(0), negative], [165, 165, 165]),
    Case(
      "iCCP that is none", [Pictures.chunk("iCCP", Build.text("p\0") + [0, 1, 2]), gamma(100_000)], [182, 156, 109]),
    Case("cICP: P3", [codePoints(12, 13, 0, 1)], [125, 83, 28]),
    Case("cICP: BT.2020", [codePoints(9, 14, 0, 1)], [130, 70, 7]),
    Case("cICP: BT.709", [codePoints(1, 1, 0, 1)], [112, 76, 27]),
    Case("cICP before iCCP", [negative, codePoints(12, 13, 0, 1)], [125, 83, 28]),
    Case("cICP of sRGB before iCCP", [codePoints(1, 13, 0, 1), negative], stored),
    Case("cICP of sRGB before gAMA", [codePoints(1, 13, 0, 1), gamma(100_000)], stored),
    Case("cICP of limited range", [codePoints(12, 13, 0, 0)], stored),
    Case("cICP unspecified, then gAMA", [codePoints(2, 2, 0, 1), gamma(100_000)], [182, 156, 109]),
    Case("cICP of an unknown number", [codePoints(200, 13, 0, 1)], stored),
  ]

  @Test(arguments: cases) func `colours are those that a browser shows`(shown: Case) async throws {
    let plain = Pictures(width: 12, height: 12, samples: 3) { _, _ in Self.stored }
    let deep = Pictures(width: 12, height: 12, samples: 3, depth: 16) { _, _ in Self.stored.map { $0 * 257 } }
    let veiled = Pictures(width: 12, height: 12, samples: 4) { _, _ in Self.stored + [200] }
    for picture in [plain, deep, veiled] {
      let file = picture.png(extraChunks: shown.chunks)
      for width in [nil, 5] {
        let pixels = try await decoding.pixels(file, .with { $0.width = width })
        #expect(isNear(Array(pixels[2, 2].prefix(3)), shown.shown, within: 2))
        if picture.samples == 4 { #expect(pixels[2, 2].last == 200) }
      }
    }
    let indexed = Pictures(width: 12, height: 12, samples: 1) { _, _ in [1] }
    let palette = [0, 0, 0] + Self.stored.map { UInt8($0) }
    let pixels = try await decoding.pixels(indexed.png(palette: palette, extraChunks: shown.chunks))
    #expect(isNear(pixels[2, 2], shown.shown, within: 2))
  }

  @Test(arguments: [
    (gamma(100_000), 158), (gamma(45455), 87), (gamma(45455) + chromaticities(swapped), 86),
    (codePoints(12, 13, 0, 1), 87), (codePoints(12, 8, 0, 1), 158),
  ])
  func `grey is as light as a browser shows it`(chunks: [UInt8], shown: Int) async throws {
    for depth in [8, 16] {
      let grey = Pictures(width: 8, height: 8, samples: 1, depth: depth) { _, _ in [depth == 16 ? 87 * 257 : 87] }
      let pixels = try await decoding.pixels(grey.png(extraChunks: chunks))
      #expect(isNear(pixels[3, 3], [shown], within: 1))
    }
    let darkest = try await decoding.pixels(
      Pictures(width: 8, height: 8, samples: 1) { _, _ in [4] }.png(extraChunks: Self.gamma(100_000)))
    #expect(isNear(darkest[3, 3], [34], within: 1))
    let veiled = Pictures(width: 8, height: 8, samples: 2) { _, _ in [87, 100] }
    let pixels = try await decoding.pixels(veiled.png(extraChunks: chunks))
    #expect(isNear(pixels[3, 3], [shown, shown, shown, 100], within: 1))
  }

  @Test func `a placeholder has the colours that are declared`() async throws {
    let picture = Pictures(width: 12, height: 12, samples: 3) { _, _ in Self.stored }
    let file = picture.png(extraChunks: Self.gamma(100_000))
    let placeholder = try await decoding.run(try decoding.task(file, .placeholder)).get().placeholder
    let color = try #require(placeholder?.color)
    #expect(isNear([16, 8, 0].map { Int(color >> $0 & 255) }, [182, 156, 109], within: 1))
  }
}

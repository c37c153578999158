import ImageCodec
import Testing

/// BMP and ICO with the real decoder. Chromium is the reference if the formats permit several readings.
@Suite struct `Bitmaps and icons` {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  /// The colours of four palette entries, as B G R and as R G B.
  private static let colors: [[UInt8]] = [[10, 20, 30], [200, 100, 50], [0, 255, 0], [255, 0, 128]]
  private static func color(_ index: Int) -> [Int] { colors[index].reversed().map { Int($0) } }

  static let palettes: [(bits: Int, header: Int, row: [UInt8], indices: [Int])] = [
    (1, 40, [0b0110_1000, 0b1000_0000], [0, 1, 1, 0, 1, 0, 0, 0, 1]), (2, 40, [0b0001_1011, 0], [0, 1, 2, 3, 0]),
    (4, 40, [0x01, 0x23, 0x10], [0, 1, 2, 3, 1]), (8, 40, [3, 2, 1, 0, 1], [3, 2, 1, 0, 1]),
    (8, 12, [3, 2, 1, 0, 1], [3, 2, 1, 0, 1]), (4, 108, [0x01, 0x23, 0x10], [0, 1, 2, 3, 1]),
    (8, 124, [3, 2, 1, 0, 1], [3, 2, 1, 0, 1]), (8, 64, [3, 2, 1, 0, 1], [3, 2, 1, 0, 1]),
  ]

  @Test(arguments: palettes)
  func `a palette gives its colours`(bits: Int, header: Int, row: [UInt8], indices: [Int]) async throws {
    let colors = header == 12 ? Self.colors + [[UInt8]](repeating: [0, 0, 0], count: 252) : Self.colors
    let first = [UInt8](repeating: 0, count: row.count)
    let bitmap = Bitmap(
      width: indices.count, height: 2, bits: bits, header: header, colors: Array(colors.prefix(1 << bits)),
      rows: [first, row])
    let pixels = try await decoding.pixels(bitmap.file)
    #expect((pixels.width, pixels.height, pixels.channels) == (indices.count, 2, 3))
    for (x, index) in indices.enumerated() {
      #expect(pixels[x, 0] == Self.color(0))
      #expect(pixels[x, 1] == Self.color(index))
    }
  }

  @Test func `an index without a colour is black`() async throws {
    let bitmap = Bitmap(width: 2, height: 1, bits: 8, colors: Self.colors, rows: [[1, 9]])
    let pixels = try await decoding.pixels(bitmap.file)
    #expect(pixels[0, 0] == Self.color(1) && pixels[1, 0] == [0, 0, 0])
  }

  static let deep: [(bitmap: Bitmap, pixels: [[Int]])] = [
    (Bitmap(width: 2, height: 1, bits: 24, rows: [[1, 2, 3, 4, 5, 6]]), [[3, 2, 1], [6, 5, 4]]),
    // The fourth byte has no meaning without a mask.
    (Bitmap(width: 2, height: 1, bits: 32, rows: [[1, 2, 3, 128, 4, 5, 6, 0]]), [[3, 2, 1], [6, 5, 4]]),
    (Bitmap(width: 2, height: 1, bits: 16, rows: [[0x1F, 0x7C, 0xE0, 0x83]]), [[255, 0, 255], [0, 255, 0]]),
    (
      Bitmap(width: 2, height: 1, bits: 16, compression: 3, masks: [0xF800, 0x7E0, 0x1F], rows: [[0, 0x58, 0x60, 1]]),
      [[90, 0, 0], [0, 45, 0]]
    ),
    (
      Bitmap(
        width: 2, height: 1, bits: 32, header: 108, compression: 3, masks: [0xFF, 0xFF00, 0xFF0000, 0xFF00_0000],
        rows: [[1, 2, 3, 128, 4, 5, 6, 255]]), [[1, 2, 3, 128], [4, 5, 6, 255]]
    ),
    (
      Bitmap(
        width: 1, height: 1, bits: 32, header: 56, compression: 3, masks: [0xFF_C000, 0x3FF0, 0xF, 0],
        rows: [[0xF5, 0x3F, 0x80, 0]]), [[128, 255, 85]]
    ),
    // All bytes that could be alpha are 0.
    (
      Bitmap(
        width: 1, height: 1, bits: 32, header: 124, masks: [0xFF0000, 0xFF00, 0xFF, 0xFF00_0000], rows: [[1, 2, 3, 0]]),
      [[3, 2, 1]]
    ),
    (
      Bitmap(width: 1, height: 1, bits: 16, compression: 6, masks: [0xF00, 0xF0, 0xF, 0xF000], rows: [[0x21, 0x83]]),
      [[51, 34, 17, 136]]
    ),
  ]

  @Test(arguments: deep) func `colours are read through their masks`(bitmap: Bitmap, expected: [[Int]]) async throws {
    let pixels = try await decoding.pixels(bitmap.file)
    for (x, pixel) in expected.enumerated() { #expect(pixels[x, 0] == pixel) }
  }

  @Test func `the top row comes last, or first if the height is negative`() async throws {
    for isTopDown in [false, true] {
      let bitmap = Bitmap(width: 1, height: 2, bits: 24, isTopDown: isTopDown, rows: [[0, 0, 255], [255, 0, 0]])
      let pixels = try await decoding.pixels(bitmap.file)
      #expect(pixels[0, 0] == [255, 0, 0] && pixels[0, 1] == [0, 0, 255])
    }
  }

  @Test func `run-length coding supports runs, literal pixels, jumps and ends`() async throws {
    let eight: [UInt8] = [2, 1, 0, 3, 2, 3, 2, 0, 0, 0, 0, 2, 1, 1, 9, 3, 0, 1]
    var bitmap = Bitmap(width: 5, height: 4, bits: 8, compression: 1, colors: Self.colors, content: eight)
    let pixels = try await decoding.pixels(bitmap.file)
    #expect((0..<5).map { pixels[$0, 3] } == [1, 1, 2, 3, 2].map(Self.color))
    #expect((0..<5).map { pixels[$0, 2] } == [[Int]](repeating: [0, 0, 0], count: 5))
    #expect((0..<5).map { pixels[$0, 1] } == [[0, 0, 0]] + [3, 3, 3, 3].map(Self.color))
    (bitmap.bits, bitmap.compression, bitmap.height) = (4, 2, 1)
    bitmap.content = [2, 0x12, 0, 3, 0x30, 0x10, 0, 1]
    let four = try await decoding.pixels(bitmap.file)
    #expect((0..<5).map { four[$0, 0] } == [1, 2, 3, 0, 1].map(Self.color))
    bitmap = Bitmap(width: 3, height: 1, bits: 24, header: 64, compression: 4, content: [2, 1, 2, 3, 1, 4, 5, 6, 0, 1])
    let deep = try await decoding.pixels(bitmap.file)
    #expect((0..<3).map { deep[$0, 0] } == [[3, 2, 1], [3, 2, 1], [6, 5, 4]])
  }

  @Test(arguments: 1...9) func `an opaque picture of any number of pixels keeps its colours`(width: Int) async throws {
    let colors: [[UInt8]] = (0..<UInt8(width)).map { [20 * $0, 255 - 9 * $0, 30 + $0] }
    let bitmap = Bitmap(
      width: width, height: 1, bits: 32, header: 56, compression: 3, masks: [0xFF, 0xFF00, 0xFF0000, 0xFF00_0000],
      rows: [colors.flatMap { $0 + [255] }])
    let pixels = try await decoding.pixels(bitmap.file)
    #expect(pixels.channels == 3 && pixels.bytes == colors.flatMap { $0 })
  }

  @Test func `a bitmap may hold a PNG or a JPEG`() async throws {
    let picture = Pictures.quarters(40, 32)
    let png = picture.png()
    let jpeg = try await decoding.encoded(png, as: .jpeg)
    for (content, compression) in [(png, 5), (jpeg, 4)] {
      let bitmap = Bitmap(width: 40, height: 32, bits: 0, compression: compression, content: content)
      #expect(isNear(try await decoding.pixels(bitmap.file)[2, 30], [0, 0, 255]))
    }
  }

  @Test func `a bitmap is scaled and written as other images are`() async throws {
    let rows = (UInt8(0)..<60).map { y in (UInt8(0)..<80).flatMap { x -> [UInt8] in [x * 3, y * 4, 200] } }
    let file = Bitmap(width: 80, height: 60, bits: 24, rows: rows).file
    let (decoded, written) = try await decoding.encoded(file, .with { $0.width = 20 })
    #expect((decoded.format, decoded.width, decoded.height) == (.jpeg, 20, 15))
    #expect((decoded.sourceWidth, decoded.sourceHeight) == (80, 60))
    #expect(isNear(try await decoding.pixels(written)[10, 7], [200, 120, 126], within: 8))
    let checked = try await decoding.run(try decoding.task(file, .check, placeholder: true)).get()
    #expect(checked.placeholder != nil)
  }

  // MARK: Icons

  @Test func `an icon shows its largest picture, and of several the one with the most bits`() async throws {
    func picture(_ side: Int, _ bits: Int, _ value: UInt8) -> (width: Int, height: Int, bits: Int, content: [UInt8]) {
      let row = [UInt8](repeating: value, count: side * bits / 8)
      let mask = [[UInt8]](repeating: [UInt8](repeating: 0, count: (side + 7) / 8), count: side)
      let bitmap = Bitmap(
        width: side, height: side, bits: bits, colors: bits == 8 ? Self.colors : [],
        rows: Array(repeating: row, count: side))
      return (side, side, bits, bitmap.inIcon(mask: mask))
    }
    for isCursor in [false, true] {
      let icon = Bitmap.icon([picture(16, 24, 9), picture(20, 8, 1), picture(20, 24, 7)], isCursor: isCursor)
      let pixels = try await decoding.pixels(icon)
      #expect((pixels.width, pixels.height) == (20, 20))
      // A cursor's directory has no bit counts, so the first picture is shown.
      #expect(pixels[3, 3] == (isCursor ? Self.color(1) : [7, 7, 7]))
    }
  }

  @Test func `the mask of an icon cuts pixels out unless it has alpha`() async throws {
    let mask: [[UInt8]] = [[0b0100_0000], [0b1000_0000]]
    let plain = Bitmap(width: 2, height: 2, bits: 24, rows: [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]])
    let cut = try await decoding.pixels(Bitmap.icon([(2, 2, 24, plain.inIcon(mask: mask.reversed()))]))
    #expect(cut[0, 0] == [3, 2, 1, 255] && cut[1, 0] == [0, 0, 0, 0] && cut[0, 1] == [0, 0, 0, 0])
    let rows: [[UInt8]] = [[1, 2, 3, 255, 4, 5, 6, 128], [7, 8, 9, 0, 10, 11, 12, 255]]
    let veiled = Bitmap(width: 2, height: 2, bits: 32, rows: rows)
    let whole = try await decoding.pixels(Bitmap.icon([(2, 2, 32, veiled.inIcon(mask: mask.reversed()))]))
    #expect(whole[0, 0] == [3, 2, 1, 255] && whole[1, 0] == [6, 5, 4, 128] && whole[1, 1] == [12, 11, 10, 255])
    let zero = Bitmap(
      width: 2, height: 2, bits: 32, rows: rows.map { [$0[0], $0[1], $0[2], 0, $0[4], $0[5], $0[6], 0] })
    let masked = try await decoding.pixels(Bitmap.icon([(2, 2, 32, zero.inIcon(mask: mask.reversed()))]))
    #expect(masked[0, 0] == [3, 2, 1, 255] && masked[1, 0] == [0, 0, 0, 0])
  }

  @Test func `a PNG in an icon has its own size and is screened like any PNG`() async throws {
    let picture = Pictures(width: 300, height: 280, samples: 4) { x, _ in [x & 255, 20, 30, 128] }
    let icon = Bitmap.icon([(16, 16, 32, Pictures.quarters(16, 16).png()), (0, 0, 32, picture.png())])
    #expect(try Decoding.header(icon) == ImageHeader(.ico, width: 300, height: 280))
    let pixels = try await decoding.pixels(icon)
    #expect((pixels.width, pixels.height) == (300, 280))
    #expect(pixels[7, 7] == [7, 20, 30, 128])
    let (decoded, _) = try await decoding.encoded(icon, .with { $0.width = 30 })
    #expect((decoded.format, decoded.width) == (.png, 30))
  }

  // MARK: Damage

  static let broken: [(name: String, file: [UInt8])] = {
    let runs = { (content: [UInt8]) in
      Bitmap(width: 4, height: 2, bits: 8, compression: 1, colors: colors, content: content).file
    }
    let rows: [[UInt8]] = [[1, 2, 3], [4, 5, 6]]
    let whole = Bitmap(width: 1, height: 2, bits: 24, rows: rows).file
    return [
      ("a jump out of the rows", runs([0, 2, 9, 0, 0, 1])), ("a jump out of the picture", runs([0, 2, 0, 2, 0, 1])),
      ("too many rows", runs([0, 0, 0, 0, 1, 1, 0, 1])),
      ("too many pixels as they are", runs([0, 5, 1, 1, 1, 1, 1, 0])),
      ("no end", runs([4, 1])), ("nothing", runs([])), ("rows that lack a byte", Array(whole.dropLast(2))),
      (
        "scattered masks",
        Bitmap(width: 1, height: 1, bits: 16, compression: 3, masks: [5, 2, 8], rows: [[0, 0]]).file
      ),
      (
        "masks that share bits",
        Bitmap(width: 1, height: 1, bits: 16, compression: 3, masks: [3, 6, 8], rows: [[0, 0]]).file
      ),
      ("pixels within the header", Array(whole[..<10]) + Build.little32(20) + Array(whole[14...])),
      (
        "an icon without its mask",
        Bitmap.icon([(1, 2, 24, Bitmap(width: 1, height: 2, bits: 24, rows: rows).inIcon(mask: []))])
      ),
      ("an icon whose picture is elsewhere", Build.ico([(16, 16)], pictures: [])),
    ]
  }()

  @Test(arguments: broken) func `a damaged bitmap is corrupt`(name: String, file: [UInt8]) async throws {
    let outcome = await decoding.run(try decoding.task(file, .check))
    guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(name): \(outcome)") }
  }

  @Test func `bitmaps of unsupported kinds are refused as unsupported`() async throws {
    for (bits, compression) in [(64, 0), (1, 3), (24, 3), (8, 9), (0, 0)] {
      let bitmap = Bitmap(width: 1, height: 1, bits: bits, compression: compression, masks: [1, 2, 4], rows: [[0, 0]])
      let outcome = await decoding.run(try decoding.task(bitmap.file, .check))
      guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(bits): \(outcome)") }
    }
  }

  @Test func `a small file that declares very many pixels is refused by their number`() async throws {
    let bomb = Bitmap(
      width: 2_000_000_000, height: 2_000_000_000, bits: 8, compression: 1, colors: Self.colors, content: [0, 1])
    let outcome = await decoding.run(try decoding.task(bomb.file, .check))
    guard case .failure(.tooManyPixels) = outcome else { return #expect(Bool(false), "\(outcome)") }
    // Missing rows must not be allocated.
    let cut = Bitmap(width: 10_000, height: 10_000, bits: 32, content: [1, 2, 3])
    let second = await decoding.run(try decoding.task(cut.file, .check))
    guard case .failure(.corrupt) = second else { return #expect(Bool(false), "\(second)") }
  }
}

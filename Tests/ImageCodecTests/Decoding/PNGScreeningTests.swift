internal import CZlib
import ImageCodec
import Testing

/// PNGs whose image data inflates to more than their rows.
struct PNGScreeningTests {
  static let refusal = DecodeError.corrupt("the PNG has data beyond its pixels")
  /// The maximum excess behind the rows; a PNG with more is rejected.
  private static let tolerance = 16 << 20

  /// R G B, all black, so the rows and the excess are zeros.
  struct Picture: CustomTestStringConvertible {
    var width: Int
    var height: Int
    var isInterlaced: Bool

    var testDescription: String { "\(width) x \(height)\(isInterlaced ? ", interlaced" : "")" }

    static let all = [(163, 161), (1030, 11), (11, 1030)].flatMap { width, height in
      [false, true].map { Picture(width: width, height: height, isInterlaced: $0) }
    }

    /// The interlacing pass of each pixel of 8 x 8.
    private static let passes: [[Character]] = [
      "16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777",
    ].map { Array($0) }

    var bytesOfRows: Int {
      guard isInterlaced else { return (3 * width + 1) * height }
      var bytes = 0
      for y in 0..<height {
        let pixels = Dictionary(grouping: 0..<width) { Self.passes[y % 8][$0 % 8] }
        for pass in pixels.values { bytes += 3 * pass.count + 1 }
      }
      return bytes
    }

    func png(_ imageData: [[UInt8]]) -> [UInt8] {
      var file: [UInt8] = [0x89] + Build.text("PNG\r\n\u{1A}\n")
      file += Pictures.chunk("IHDR", Build.big32(width) + Build.big32(height) + [8, 2, 0, 0, isInterlaced ? 1 : 0])
      for piece in imageData { file += Pictures.chunk("IDAT", piece) }
      return file + Pictures.chunk("IEND", [])
    }

    /// Has so many bytes behind the end of the stream, which are never inflated, that the PNG is checked.
    func png(zerosBehindRows count: Int) -> [UInt8] {
      png([PNGScreeningTests.zeros(bytesOfRows + count) + [UInt8](repeating: 1, count: 50_000)])
    }
  }

  private static func deflated(_ content: [UInt8]) -> [UInt8] {
    var length = compressBound(UInt(content.count))
    var result = [UInt8](repeating: 0, count: Int(length))
    #expect(compress2(&result, &length, content, UInt(content.count), 9) == Z_OK)
    return Array(result.prefix(Int(length)))
  }

  /// Zeros as the image data of a PNG.
  static func zeros(_ count: Int) -> [UInt8] { deflated([UInt8](repeating: 0, count: count)) }

  @Test(arguments: ["tEXt", "zTXt", "iCCP", "sPLT", "abCd"])
  func `a chunk before the image that is longer than the file is refused`(name: String) async throws {
    let decoding = try Decoding(memory: 256 << 20)
    let whole = Pictures.quarters(4, 4).png()
    let liar = [0x7F, 0xFF, 0xFF, 0xF0] + Build.text("\(name)ab\0cd")
    let refusal = DecodeError.corrupt("a chunk of the PNG is longer than the file")
    for file in [whole[..<33] + liar, whole[..<33] + liar + whole[33...]] {
      #expect(await decoding.run(try decoding.task(Array(file), .check)) == .failure(refusal))
    }
    // libpng does not read what follows the image.
    let behind = Array(whole.dropLast(12) + liar)
    #expect(try await decoding.pixels(behind) == (try await decoding.pixels(whole)))
  }

  @Test(arguments: Picture.all)
  func `a PNG is refused if it inflates to more than the tolerance behind its rows`(picture: Picture)
    async throws
  {
    let decoding = try Decoding.shared()
    for (count, isRefused) in [(0, false), (Self.tolerance, false), (Self.tolerance + 1, true)] {
      let outcome = await decoding.run(try decoding.task(picture.png(zerosBehindRows: count), .check))
      switch outcome {
      case .success: #expect(!isRefused, "\(count)")
      case .failure(let error): #expect(isRefused && error == Self.refusal, "\(count): \(error)")
      }
    }
  }

  @Test func `excess data is found in truncated files, in many chunks and behind text`() async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 100, height: 100, isInterlaced: false)
    let data = Self.zeros(picture.bytesOfRows + 4 * Self.tolerance)
    let whole = picture.png([data])
    // The length in IDAT exceeds the file.
    let cut = Array(whole.dropLast(1000))
    let inManyChunks = picture.png([[], [data[0]], [], [data[1]], [data[2]], Array(data.dropFirst(3))])
    let text = Pictures.chunk("zTXt", Build.text("a\0\0b"))
    var behindText = whole
    behindText.insert(contentsOf: text, at: 33)
    var aroundText = Array(picture.png([Array(data.prefix(5000))]).dropLast(12))
    aroundText += text
    aroundText += picture.png([Array(data.dropFirst(5000))]).dropFirst(33)
    let files: [[UInt8]] = [cut, inManyChunks, behindText, aroundText]
    for (number, file) in files.enumerated() {
      let outcome = await decoding.run(try decoding.task(file, .check))
      #expect(outcome == .failure(Self.refusal), "\(number): \(outcome)")
    }
  }

  /// Rows of noise, large enough for the image data to be inflated by the check.
  private static func noise(_ picture: Picture) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    var rows: [UInt8] = []
    for _ in 0..<picture.height {
      rows.append(0)
      for _ in 0..<(3 * picture.width) { rows.append(.random(in: 0...255, using: &random)) }
    }
    return deflated(rows)
  }

  @Test func `valid image data is decoded in any split into chunks, and with bytes behind its end`() async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 90, height: 80, isInterlaced: false)
    let data = Self.noise(picture)
    let expected = try await decoding.pixels(picture.png([data]))
    let single = data.prefix(300).flatMap { [[$0], []] }
    let files = [
      picture.png([[]] + single + [Array(data.dropFirst(300))]),
      picture.png(stride(from: 0, to: data.count, by: 999).map { Array(data[$0..<min($0 + 999, data.count)]) }),
      picture.png([data + [UInt8](repeating: 1, count: 1000)]),
      // libpng does not inflate a second stream, so its length does not matter.
      picture.png([data + Self.zeros(2 * Self.tolerance)]), picture.png([data, Self.zeros(2 * Self.tolerance)]),
    ]
    for file in files { #expect(try await decoding.pixels(file) == expected) }
  }

  @Test func `damaged image data is reported by libpng`() async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 90, height: 80, isInterlaced: false)
    let data = Self.noise(picture)
    var blockType = data
    blockType[2] = 0b111
    for damaged in [blockType, [0x78, 0x9D] + data.dropFirst(2), Array(data.dropLast(2000))] {
      let outcome = await decoding.run(try decoding.task(picture.png([damaged]), .check))
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
      #expect(outcome != .failure(Self.refusal))
    }
  }

  @Test func `a suggested palette behind the transparent colour is not damage`() async throws {
    let decoding = try Decoding.shared()
    let picture = Pictures(width: 4, height: 2, samples: 3) { x, _ in [x == 0 ? 9 : 200, 7, 7] }
    let transparent = Pictures.chunk("tRNS", [0, 9, 0, 7, 0, 7])
    let file = picture.png(extraChunks: transparent + Pictures.chunk("PLTE", [1, 2, 3, 4, 5, 6]))
    let pixels = try await decoding.pixels(file)
    #expect(pixels[0, 0].last == 0 && pixels[1, 0] == [200, 7, 7, 255])
    #expect(try await decoding.run(try decoding.task(file, .check)).get().sourceWidth == 4)
  }
}

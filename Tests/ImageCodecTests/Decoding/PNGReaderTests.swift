internal import CVectors
internal import CZlib
import ImageCodec
import Testing

/// The image data of PNGs: its length, its parts, its filters, and its damage.
struct PNGReaderTests {
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
      for y in 0..<min(8, height) {
        let pixels = Dictionary(grouping: 0..<width) { Self.passes[y][$0 % 8] }
        for pass in pixels.values { bytes += (3 * pass.count + 1) * ((height - y + 7) / 8) }
      }
      return bytes
    }

    func png(_ imageData: [[UInt8]]) -> [UInt8] {
      var file: [UInt8] = [0x89] + Build.text("PNG\r\n\u{1A}\n")
      file += Pictures.chunk("IHDR", Build.big32(width) + Build.big32(height) + [8, 2, 0, 0, isInterlaced ? 1 : 0])
      for piece in imageData { file += Pictures.chunk("IDAT", piece) }
      return file + Pictures.chunk("IEND", [])
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
    // What follows the image is not read.
    let behind = Array(whole.dropLast(12) + liar)
    #expect(try await decoding.pixels(behind) == (try await decoding.pixels(whole)))
  }

  @Test(arguments: Picture.all)
  func `what the image data inflates to after the pixels is ignored`(picture: Picture) async throws {
    let decoding = try Decoding(memory: 256 << 20)
    let pixels = try await decoding.pixels(picture.png([Self.zeros(picture.bytesOfRows)]))
    #expect(pixels.bytes.allSatisfy { $0 == 0 })
    for excess in [1, 300, 70_000, 1 << 30] {
      let file = picture.png([Self.zeros(picture.bytesOfRows) + Self.zeros(100), Self.zeros(min(excess, 1000))])
      #expect(try await decoding.pixels(file) == pixels, "\(excess)")
      // In the same stream.
      let long = picture.png([Self.zeros(picture.bytesOfRows + min(excess, 64 << 20))])
      guard long.count < 2 * picture.bytesOfRows else { continue }
      #expect(try await decoding.pixels(long) == pixels, "\(excess)")
    }
  }

  @Test(arguments: Picture.all)
  func `a PNG whose image data ends before its pixels is refused`(picture: Picture) async throws {
    let decoding = try Decoding.shared()
    for missing in [1, 100, picture.bytesOfRows] {
      let data = Self.zeros(picture.bytesOfRows - missing)
      for pieces in [[data], data.map { [$0] }, [data + Self.zeros(1000)], []] {
        let outcome = await decoding.run(try decoding.task(picture.png(pieces), .check))
        guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(missing): \(outcome)") }
      }
    }
  }

  /// Its rows are inflated one after the other.
  @Test(arguments: [false, true])
  func `a PNG whose rows are larger than the memory for all is decoded`(isInterlaced: Bool) async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 5000, height: 4500, isInterlaced: isInterlaced)
    let data = Self.zeros(picture.bytesOfRows)
    let pieces = [Array(data.prefix(1)), [], Array(data.dropFirst())]
    let pixels = try await decoding.pixels(picture.png(pieces), .with { $0.width = 50 })
    #expect((pixels.width, pixels.height) == (50, 45) && pixels.bytes.allSatisfy { $0 == 0 })
    let short = picture.png([Self.zeros(picture.bytesOfRows - 1)])
    guard case .failure(.corrupt) = await decoding.run(try decoding.task(short, .check)) else {
      return #expect(Bool(false))
    }
  }

  @Test(arguments: [1, 2, 3, 4, 6, 8], 0..<5)
  func `filters are undone as the specification says`(size: Int, filter: Int) {
    var random = SeededGenerator(state: 7)
    let count = 13 * size
    func row() -> [UInt8] { (0..<count).map { _ in .random(in: 0...255, using: &random) } }
    let (above, stored) = (row(), row())
    var row = stored
    cvectors_unfilter(Int32(filter), &row, above, count, size)
    var expected = stored
    for index in 0..<count {
      let left = index < size ? 0 : Int(expected[index - size])
      let corner = index < size ? 0 : Int(above[index - size])
      let estimate = left + Int(above[index]) - corner
      let nearest = [left, Int(above[index]), corner].min {
        abs(estimate - $0) < abs(estimate - $1)
      }!
      let prediction = [0, left, Int(above[index]), (left + Int(above[index])) / 2, nearest][filter]
      expected[index] = UInt8(truncatingIfNeeded: Int(stored[index]) + prediction)
    }
    #expect(row == expected)
  }

  @Test(arguments: [1, 2, 3, 4], [1, 7, 40_001])
  func `a row is filtered so that it can be restored`(size: Int, width: Int) {
    var random = SeededGenerator(state: UInt64(width))
    let count = width * size
    let zeros = [UInt8](repeating: 0, count: size)
    let above = zeros + (0..<count).map { _ in .random(in: 0...255, using: &random) }
    var filters: Set<UInt8> = []
    // Noise, the row above with little noise, and a slope.
    let rows: [[UInt8]] = [
      (0..<count).map { _ in .random(in: 0...255, using: &random) },
      above.dropFirst(size).map { $0 &+ .random(in: 0...3, using: &random) },
      (0..<count).map { UInt8(truncatingIfNeeded: 3 * ($0 / size)) }, [UInt8](repeating: 0, count: count),
    ]
    for row in rows {
      var (trial, result) = ([UInt8](repeating: 0, count: count), [UInt8](repeating: 0, count: count + 1))
      let padded = zeros + row
      padded.withUnsafeBufferPointer { row in
        above.withUnsafeBufferPointer { above in
          cvectors_filter(row.baseAddress! + size, above.baseAddress! + size, count, size, &trial, &result)
        }
      }
      filters.insert(result[0])
      var restored = Array(result.dropFirst())
      cvectors_unfilter(Int32(result[0]), &restored, Array(above.dropFirst(size)), count, size)
      #expect(restored == row)
    }
    if width > 1 { #expect(filters.isSuperset(of: [0, 2])) }
  }

  @Test(arguments: 1...4, [false, true])
  func `samples of a row are taken with their alpha, and no byte behind the row`(stride: Int, isWeighted: Bool) {
    var random = SeededGenerator(state: 3)
    for count in 1...70 {
      // Exactly as long as the row.
      let row = (0..<(count * stride)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: row.count)
      defer { memory.deallocate() }
      memory.update(from: row, count: row.count)
      for band in 0..<stride {
        let alpha = isWeighted ? UnsafePointer(memory + stride - 1) : nil
        let expected = (0..<count).map { index in
          Float(row[index * stride + band]) * (isWeighted ? Float(row[index * stride + stride - 1]) / 255 : 1)
        }
        for take in [cvectors_samples, cvectors_samples_body] {
          var samples = [Float](repeating: -1, count: count)
          take(memory + band, alpha, stride, count, &samples)
          #expect(samples == expected)
        }
      }
    }
  }

  /// Rows of noise.
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
      // A second stream is not read.
      picture.png([data + Self.zeros(1 << 25)]), picture.png([data, Self.zeros(1 << 25)]),
    ]
    for file in files { #expect(try await decoding.pixels(file) == expected) }
  }

  @Test(arguments: [(1, 400), (2, 300), (3, 300), (4, 400)])
  func `noise is written and read again`(samples: Int, side: Int) async throws {
    let decoding = try Decoding.shared()
    var random = SeededGenerator(state: UInt64(samples))
    let bytes = (0..<(side * side * samples)).map { _ in Int.random(in: 0...255, using: &random) }
    let picture = Pictures(width: side, height: side, samples: samples) { x, y in
      Array(bytes[((y * side + x) * samples)..<((y * side + x + 1) * samples)])
    }
    let source = picture.png()
    let written = try await decoding.encoded(source, .with { $0.format = .png }).1
    #expect(try await decoding.pixels(written) == (try await decoding.pixels(source)))
    #expect(written.count < bytes.count + side + bytes.count / 500 + 200)
  }

  @Test func `a wrong checksum of the data after the last pixel is ignored, as by libpng`() async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 90, height: 80, isInterlaced: false)
    let data = Self.noise(picture)
    let damaged = Array(data.dropLast()) + [data.last! ^ 1]
    #expect(try await decoding.pixels(picture.png([damaged])) == (try await decoding.pixels(picture.png([data]))))
  }

  @Test func `an image with a side that libvips cannot hold is refused if libvips is needed`() async throws {
    let decoding = try Decoding.shared()
    let tall = Picture(width: 1, height: 10_000_001, isInterlaced: false)
    let file = tall.png([Self.zeros(tall.bytesOfRows)])
    for output in [DecodeTask.Output.facts(.perceptualHash), .encoded(decoding.newPath())] {
      let outcome = await decoding.run(try decoding.task(file, output, .with { $0.format = .webp }))
      guard case .failure(.tooManyPixels) = outcome else { return #expect(Bool(false), "\(outcome)") }
    }
  }

  @Test func `damaged image data is reported`() async throws {
    let decoding = try Decoding.shared()
    let picture = Picture(width: 90, height: 80, isInterlaced: false)
    let data = Self.noise(picture)
    var blockType = data
    blockType[2] = 0b111
    for damaged in [blockType, [0x78, 0x9D] + data.dropFirst(2), Array(data.dropLast(2000))] {
      let outcome = await decoding.run(try decoding.task(picture.png([damaged]), .check))
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
    }
  }

  @Test(arguments: ["tRNS", "iCCP"])
  func `a damaged chunk that changes the pixels is ignored and reported`(chunk: String) async throws {
    let decoding = try Decoding.shared()
    let picture = Pictures(width: 4, height: 2, samples: 3) { x, _ in [x == 0 ? 9 : 200, 7, 7] }
    var damaged = Pictures.chunk(chunk, [0, 9, 0, 7, 0, 7])
    damaged[8] ^= 1
    let file = picture.png(extraChunks: damaged)
    #expect(try await decoding.encoded(file, .with { $0.width = 2 }).0.notes == .damaged)
    #expect(try await decoding.run(try decoding.task(file, .check)).get().notes == .damaged)
    #expect(try await decoding.pixels(file)[0, 0] == [9, 7, 7])
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

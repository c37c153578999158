import CAVIF
import Foundation
import ImageCodec
import Testing

/// AVIF as browsers read and write it, with the real decoder.
struct AVIFTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  private static func grey(_ x: Int, _ y: Int) -> [Int] { [4 * x, 4 * x, 4 * x, 255] }

  @Test(arguments: [8, 10, 12], [true, false])
  func `grey has the range that the file declares`(depth: Int, isFullRange: Bool) async throws {
    let file = try AVIFBuilder(
      layout: AVIF_PIXEL_FORMAT_YUV400, depth: depth, isFullRange: isFullRange, frames: [(0, Self.grey)]
    ).file()
    let pixels = try await decoding.pixels(file)
    for x in [0, 1, 30, 63] { #expect(isNear(pixels[x, 5], [4 * x, 4 * x, 4 * x], within: 3), "\(x)") }
  }

  @Test(arguments: [true, false]) func `alpha has the range that the file declares`(isFullRange: Bool) async throws {
    let file = try AVIFBuilder(isFullRange: isFullRange, frames: [(0, { x, _ in [200, 100, 50, 4 * x + 3] })]).file()
    let pixels = try await decoding.pixels(file)
    for x in [0, 1, 30, 63] { #expect(abs(pixels[x, 5][3] - (4 * x + 3)) <= 2, "\(x)") }
  }

  @Test func `premultiplied colours become straight`() async throws {
    let file = try AVIFBuilder(isPremultiplied: true, frames: [(0, { _, _ in [200, 100, 50, 128] })]).file()
    #expect(isNear(try await decoding.pixels(file)[9, 9], [200, 100, 50, 128], within: 4))
  }

  /// Expected values from lcms, with a profile of the primaries.
  @Test(arguments: [(12, 13, [255, 0, 0], [255, 0, 0]), (12, 13, [128, 100, 80], [133, 99, 77])])
  func `colours that only nclx tells are converted`(
    primaries: Int, transfer: Int, stored: [Int], shown: [Int]
  ) async throws {
    let file = try AVIFBuilder(
      primaries: primaries, transfer: transfer, frames: [(0, { _, _ in stored + [255] })]
    ).file()
    #expect(isNear(try await decoding.pixels(file)[9, 9], shown, within: 3))
  }

  /// Browsers show the transfer functions of BT.2020 as sRGB. Colours of BT.2020 in the primaries of BT.709.
  @Test(
    arguments: [14, 15],
    [([128, 100, 80], [144, 96, 76]), ([200, 120, 60], [237, 105, 40]), ([60, 140, 90], [0, 147, 83])])
  func `colours of television in BT2020 are converted`(
    transfer: Int, color: (stored: [Int], shown: [Int])
  ) async throws {
    for isFullRange in [true, false] {
      let file = try AVIFBuilder(
        depth: transfer == 14 ? 10 : 12, isFullRange: isFullRange, primaries: 9, transfer: transfer,
        frames: [(0, { _, _ in color.stored + [255] })]
      ).file()
      let shown = try await decoding.pixels(file)[9, 9]
      #expect(isNear(shown, color.shown, within: 4), "\(shown)")
    }
  }

  /// Six pictures, each a grey ramp in different values.
  @Test(arguments: [255, 128]) func `the pictures of a grid are joined`(alpha: Int) async throws {
    let cells = (0..<6).map { cell in (0, { (x: Int, y: Int) in [40 * cell, 3 * x, 3 * y, alpha] }) }
    let file = try AVIFBuilder(turns: 1, columns: 3, frames: cells).file()
    let header = try Decoding.header(file)
    #expect((header.width, header.height, header.orientation) == (192, 128, 8))
    let pixels = try await decoding.pixels(file, .with { $0.isOriented = false })
    #expect((pixels.width, pixels.height) == (192, 128))
    for (x, y) in [(2, 3), (63, 63), (64, 64), (130, 10), (190, 127)] {
      let expected = [40 * (x / 64 + 3 * (y / 64)), 3 * (x % 64), 3 * (y % 64)] + (alpha == 255 ? [] : [alpha])
      #expect(isNear(pixels[x, y], expected, within: 8), "\(x), \(y): \(pixels[x, y])")
    }
    let turned = try await decoding.pixels(file)
    #expect((turned.width, turned.height) == (128, 192))
  }

  @Test func `a grid that lacks a picture is corrupt`() async throws {
    let cells = (0..<4).map { cell in (0, { (_: Int, _: Int) in [60 * cell, 0, 0, 255] }) }
    var file = try AVIFBuilder(columns: 2, frames: cells).file()
    // The number of rows minus one, and of columns minus one (ISO/IEC 23008-12 section 6.6.2.3).
    let grid = try #require(
      file.indices.dropLast(8).last { Array(file[$0..<($0 + 8)]) == [0, 0, 1, 1, 0, 128, 0, 128] })
    file[grid + 2] = 2
    let outcome = await decoding.run(try decoding.task(file, .check))
    guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `the order of the associations of an item changes nothing`() async throws {
    let file = try AVIFBuilder(
      turns: 1, clap: [32, 1, 16, 1, UInt32(bitPattern: -8), 1, 16, 1],
      frames: [(0, { x, y in [4 * x, 4 * y, 0, 255] })]
    ).file()
    // Version and flags, the number of items, the first item's number and the number of its properties.
    let start = try #require(file.indices.dropLast(15).first { Array(file[$0..<($0 + 4)]) == Build.text("ipma") }) + 15
    let places = start..<(start + Int(file[start - 1]))
    #expect(places.count >= 5)
    var reversed = file
    reversed.replaceSubrange(places, with: file[places].reversed())
    #expect(reversed != file)
    #expect(try Decoding.header(reversed) == Decoding.header(file))
    let pixels = try await decoding.pixels(reversed)
    #expect((pixels.width, pixels.height) == (16, 32))
    #expect(try await pixels == decoding.pixels(file))
  }

  /// The aperture is 32 x 16 pixels at 8, 40.
  @Test(arguments: [nil, 1] as [UInt8?]) func `the clean aperture is cut before the picture is turned`(
    turns: UInt8?
  ) async throws {
    let file = try AVIFBuilder(
      turns: turns, clap: [32, 1, 16, 1, UInt32(bitPattern: -8), 1, 16, 1],
      frames: [(0, { x, y in [4 * x, 4 * y, 0, 255] })]
    ).file()
    let header = try Decoding.header(file)
    #expect((header.width, header.height) == (32, 16))
    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height) == (turns == nil ? (32, 16) : (16, 32)))
    let first = turns == nil ? pixels[0, 0] : pixels[0, 31]
    #expect(isNear(first, [32, 160, 0], within: 4), "\(first)")
  }

  private static let colors = [[255, 0, 0, 254], [0, 255, 0, 200], [0, 0, 255, 128]]

  private func sequence() throws -> [UInt8] {
    try AVIFBuilder(
      frames: Self.colors.enumerated().map { index, color in (100 * (index + 1), { _, _ in color }) }
    ).file()
  }

  @Test func `a sequence becomes an animated WebP with its delays`() async throws {
    let file = try sequence()
    #expect(try Decoding.header(file).frames == 3)
    let (decoded, webp) = try await decoding.encoded(file, .with { $0.frames = .all })
    #expect((decoded.format, decoded.frames) == (.webp, 3))
    var delays: [Int] = []
    for place in webp.indices.dropLast(24) where webp[place..<(place + 4)].elementsEqual("ANMF".utf8) {
      delays.append(Int(webp[place + 20]) | Int(webp[place + 21]) << 8)
    }
    #expect(delays == [100, 200, 300])
    let still = try await decoding.pixels(file)
    #expect((still.width, still.height) == (64, 64))
    #expect(isNear(Array(still[5, 5].prefix(3)), [255, 0, 0], within: 4))
  }

  @Test func `all frames of a sequence count`() async throws {
    let task = try decoding.task(try sequence(), .check, maxPixels: 64 * 64 * 3 - 1)
    guard case .failure(.tooManyPixels) = await decoding.run(task) else {
      return #expect(Bool(false), "a frame is not counted")
    }
  }

  @Test(arguments: [60, 95]) func `libavif recognises the alpha that is written`(quality: Int) async throws {
    let ramp = Pictures(width: 256, height: 16, samples: 4) { x, _ in [200, 100, 50, x] }
    let file = try await decoding.encoded(ramp.png(), as: .avif, quality: quality)
    let decoder = try #require(file.withUnsafeBytes { cavif_open($0.baseAddress, $0.count, AVIF_DECODER_SOURCE_AUTO) })
    defer { avifDecoderDestroy(decoder) }
    let alpha = try file.withUnsafeBytes { bytes -> [Int] in
      avifDecoderSetIOMemory(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
      guard avifDecoderParse(decoder) == AVIF_RESULT_OK, avifDecoderNextImage(decoder) == AVIF_RESULT_OK else {
        throw Decoding.NotAnImage()
      }
      let plane = try #require(decoder.pointee.image.pointee.alphaPlane)
      return (0..<256).map { Int(plane[$0]) }
    }
    for x in [8, 64, 128, 192, 250] { #expect(abs(alpha[x] - x) <= 4, "\(x): \(alpha[x])") }
  }

  @Test func `grey and alpha are written as grey and alpha`() async throws {
    for samples in [1, 2] {
      let picture = Pictures(width: 64, height: 16, samples: samples) { x, _ in [4 * x, 255 - x].prefix(samples) + [] }
      let file = try await decoding.encoded(picture.png(), as: .avif)
      let pixels = try await decoding.pixels(file)
      let expected = samples == 1 ? [120, 120, 120] : [120, 120, 120, 225]
      #expect(isNear(pixels[30, 8], expected, within: 4), "\(pixels[30, 8])")
    }
  }

  @Test func `truncated and mutated files are corrupt and crash no decoder`() async throws {
    let decoding = try Decoding()
    let files = [try sequence(), try AVIFBuilder(isFullRange: false, frames: [(0, Self.grey)]).file()]
    var random = SystemRandomNumberGenerator()
    for file in files {
      var broken = stride(from: 40, to: file.count, by: max(1, file.count / 60)).map { Array(file.prefix($0)) }
      for _ in 0..<150 {
        var copy = file
        for _ in 0..<3 { copy[.random(in: 32..<copy.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8) }
        broken.append(copy)
      }
      for bytes in broken {
        guard let task = try? decoding.task(bytes, .check, maxPixels: 1_000_000) else { continue }
        let outcome = await decoding.run(task)
        if case .failure(let error) = outcome {
          #expect(error != .crashed && !error.isTimeout, "\(Data(bytes).base64EncodedString())")
        }
      }
    }
    #expect(decoding.pool.statistics.crashed == 0)
  }
}

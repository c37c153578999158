import Foundation
import ImageCodec
import Testing

/// Resizing of pixels and encoding as JPEG, by the real decoder.
struct ResamplingTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  struct Case: CustomTestStringConvertible {
    var (from, to): (size: (Int, Int), result: (Int, Int))
    var samples = 3
    var testDescription: String { "\(from) to \(to), \(samples) samples" }

    init(_ width: Int, _ height: Int, to newWidth: Int, _ newHeight: Int, samples: Int = 3) {
      (from, to) = ((width, height), (newWidth, newHeight))
      self.samples = samples
    }
  }

  static let edges = [
    Case(1, 1, to: 5, 3), Case(5, 3, to: 1, 1), Case(64, 1, to: 7, 1), Case(1, 64, to: 1, 9, samples: 1),
    Case(40, 30, to: 40, 7), Case(40, 30, to: 9, 30), Case(40, 30, to: 41, 31), Case(3, 200, to: 200, 3),
    Case(200, 150, to: 2, 1, samples: 1), Case(7, 5, to: 90, 80, samples: 1), Case(101, 67, to: 50, 33),
  ]

  static let others = (0..<12).map { _ in
    let sides = (0..<4).map { _ in Int.random(in: 1...70) }
    return Case(sides[0], sides[1], to: sides[2], sides[3], samples: [1, 3].randomElement()!)
  }

  @Test(arguments: edges + others) func `resizing uses the Lanczos filter`(of one: Case) async throws {
    let waves = Pictures.waves(one.from.0, one.from.1)
    let picture = Pictures(width: waves.width, height: waves.height, samples: one.samples) { x, y in
      Array(waves.pixel(x, y).prefix(one.samples))
    }
    let transform = Transform.with {
      ($0.width, $0.height, $0.fit, $0.enlarge) = (one.to.0, one.to.1, .fill, true)
    }
    let pixels = try await decoding.pixels(picture.png(), transform)
    #expect((pixels.width, pixels.height, pixels.channels) == (one.to.0, one.to.1, one.samples))
    let expected = naive(picture, one.to.0, one.to.1)
    for (index, byte) in pixels.bytes.enumerated() {
      // A value between two bytes may be rounded either way.
      #expect(abs(Double(byte) - expected[index]) < 0.51, "sample \(index)")
    }
  }

  /// The definition of the filter, computed all at once.
  private func naive(_ picture: Pictures, _ width: Int, _ height: Int) -> [Double] {
    let (across, down) = (weights(picture.width, width), weights(picture.height, height))
    let source = (0..<picture.height).map { y in (0..<picture.width).map { x in picture.pixel(x, y).map(Double.init) } }
    var result: [Double] = []
    for row in down {
      for column in across {
        for sample in 0..<picture.samples {
          var sum = 0.0
          for (y, weight) in row {
            for (x, other) in column { sum += weight * other * source[y][x][sample] }
          }
          result.append(min(max(sum, 0), 255))
        }
      }
    }
    return result
  }

  /// The weights for each pixel of the result, of all pixels of the source that have one.
  private func weights(_ source: Int, _ result: Int) -> [[(place: Int, weight: Double)]] {
    let scale = Double(source) / Double(result)
    return (0..<result).map { pixel in
      let center = (Double(pixel) + 0.5) * scale
      let weights = (0..<source).map { lanczos((Double($0) + 0.5 - center) / max(1, scale)) }
      let sum = weights.reduce(0, +)
      return weights.indices.compactMap { weights[$0] == 0 ? nil : ($0, weights[$0] / sum) }
    }
  }

  private func lanczos(_ x: Double) -> Double {
    if abs(x) < 1e-9 { return 1 }
    return abs(x) < 3 ? sin(.pi * x) / (.pi * x) * sin(.pi * x / 3) / (.pi * x / 3) : 0
  }

  /// PNGs of one sample and of three. 512 x 301: libjpeg's own reductions cut the last row.
  private static let hills = [1, 3].map { samples in
    let hills = Pictures.hills(512, 301)
    return Pictures(width: 512, height: 301, samples: samples) { x, y in Array(hills.pixel(x, y).prefix(samples)) }
      .png()
  }

  @Test(arguments: [1, 3], [512, 301, 257, 100, 64, 40, 5]) func `a JPEG is resized like a PNG of its pixels`(
    samples: Int, width: Int
  ) async throws {
    let png = Self.hills[samples / 3]
    let jpeg = try await decoding.encoded(png, as: .jpeg)
    let pixels = try await decoding.pixels(jpeg, .with { $0.width = width })
    let expected = try await decoding.pixels(png, .with { $0.width = width })
    #expect((pixels.width, pixels.height, pixels.channels) == (width, expected.height, samples))
    #expect(pixels.meanDifference(from: expected) < 1.5)
  }

  @Test func `an image that would keep too many rows open is resized with little memory`() async throws {
    let decoding = try Decoding(memory: 300 << 20)
    let stripe = Pictures(width: 20_000, height: 2, samples: 1) { x, _ in [x < 10_000 ? 50 : 200] }
    let jpeg = try await decoding.encoded(stripe.png(), as: .jpeg)
    for file in [stripe.png(), jpeg] {
      let tall = try await decoding.pixels(
        file, .with { ($0.width, $0.height, $0.fit, $0.enlarge) = (64, 65_500, .fill, true) })
      #expect((tall.width, tall.height) == (64, 65_500))
      #expect(isNear(tall[8, 100], [50], within: 3) && isNear(tall[56, 65_400], [200], within: 3))
    }
  }

  /// libvips reads some rows more than once, although they are decoded once.
  @Test func `a large image is resized and blurred`() async throws {
    let black = PNGReaderTests.Picture(width: 2500, height: 2500, isInterlaced: false)
    let png = black.png([PNGReaderTests.zeros(black.bytesOfRows)])
    for file in [png, try await decoding.encoded(png, as: .jpeg)] {
      let (decoded, _) = try await decoding.encoded(file, .with { ($0.width, $0.blur, $0.format) = (2200, 20, .webp) })
      #expect((decoded.width, decoded.height) == (2200, 2200))
    }
  }

  @Test func `a JPEG of two components is written with only the first`() async throws {
    let codes: [UInt8] = [1] + [UInt8](repeating: 0, count: 16)  // one code, of one bit, for 0
    var file: [UInt8] = [0xFF, 0xD8] + Build.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
    file += Build.segment(0xC0, [8, 0, 8, 0, 8, 2, 1, 0x11, 0, 2, 0x11, 0])
    file += Build.segment(0xC4, [0x00] + codes + [0x10] + codes)
    file += Build.segment(0xDA, [2, 1, 0, 2, 0, 0, 63, 0]) + [0x0F, 0xFF, 0xD9]
    let pixels = try await decoding.pixels(try await decoding.encoded(file, as: .jpeg))
    #expect((pixels.width, pixels.height, pixels.channels) == (8, 8, 1))
    #expect(pixels[3, 3] == [128])
  }

  @Test(arguments: [(89, 0x22), (90, 0x11)]) func `colours of a JPEG have their full resolution from quality 90 on`(
    quality: Int, sampling: Int
  ) async throws {
    let jpeg = try await decoding.encoded(Pictures.hills(64, 48).png(), as: .jpeg, quality: quality)
    let frame = try #require(jpeg.indices.first { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xC0 })
    #expect(Int(jpeg[frame + 11]) == sampling)
  }

  @Test(arguments: [1, 3]) func `a JPEG may be large`(samples: Int) async throws {
    let waves = Pictures.waves(400, 300)
    let picture = Pictures(width: 400, height: 300, samples: samples) { x, y in
      Array(waves.pixel(x, y).prefix(samples))
    }
    let jpeg = try await decoding.encoded(picture.png(), as: .jpeg, quality: 100)
    #expect(jpeg.count > 60_000)
    let pixels = try await decoding.pixels(jpeg)
    #expect(pixels.channels == samples)
    #expect(pixels.meanDifference(from: try await decoding.pixels(picture.png())) < 2)
  }
}

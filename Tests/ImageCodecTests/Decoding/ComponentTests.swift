import CVectors
import ImageCodec
import Testing

/// Each component of a JPEG is resized from its own samples, of which there may be fewer.
struct ComponentTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  struct Sampling: CustomTestStringConvertible {
    var components: [(across: Int, down: Int)]
    var isRGB = false
    /// The maximum mean difference from resizing all pixels, in which the edges of blocks are sharper. A component that
    /// is shifted by half of its own sample differs by half as much again, or more.
    var tolerance: Double

    init(_ components: (Int, Int)..., isRGB: Bool = false, within tolerance: Double) {
      self.components = components.map { (across: $0.0, down: $0.1) }
      (self.isRGB, self.tolerance) = (isRGB, tolerance)
    }

    var testDescription: String {
      components.map { "\($0.across)x\($0.down)" }.joined(separator: " ") + (isRGB ? " RGB" : "")
    }
  }

  static let samplings = [
    Sampling((1, 1), within: 0.1),
    Sampling((1, 1), (1, 1), (1, 1), isRGB: true, within: 0.1),
    Sampling((1, 1), (1, 1), (1, 1), within: 0.3),
    Sampling((2, 2), (2, 1), (1, 2), within: 0.3),
    Sampling((2, 2), (1, 1), (1, 1), within: 0.45),
    Sampling((2, 1), (1, 1), (1, 1), within: 0.45),
    Sampling((1, 2), (1, 1), (1, 1), within: 0.45),
    Sampling((3, 1), (1, 1), (1, 1), within: 0.55),
    Sampling((1, 1), (2, 2), (2, 2), within: 0.6),
    Sampling((4, 1), (1, 1), (1, 1), within: 0.8),
  ]

  private func file(_ sampling: Sampling, _ width: Int, _ height: Int) -> BlockJPEG {
    // Hills of different lengths, so that a shifted component is detected.
    let slopes: [(Int, Int) -> Int] = [
      { x, y in hill(x + y / 2, 95) + 80 }, { x, y in 108 + hill(x + 10, 120) / 2 }, { x, y in 108 + hill(y, 85) / 2 },
    ]
    return BlockJPEG(
      width: width, height: height,
      components: zip(sampling.components, slopes).map { .init(across: $0.across, down: $0.down, value: $1) },
      isRGB: sampling.isRGB)
  }

  @Test(arguments: samplings) func `resizing does not shift any component`(sampling: Sampling) async throws {
    let jpeg = file(sampling, 132, 103)
    let (file, reference) = (jpeg.file, jpeg.picture.png())
    var differences: [Double] = []
    for crop in [nil, Transform.Crop(x: 7, y: 3, width: 113, height: 85)] {
      for width in [150, 66, 49, 30, 16] {
        let transform = Transform.with { ($0.width, $0.crop, $0.enlarge) = (width, crop, true) }
        let pixels = try await decoding.pixels(file, transform)
        let expected = try await decoding.pixels(reference, transform)
        #expect((pixels.width, pixels.height, pixels.channels) == (width, expected.height, sampling.components.count))
        differences.append(pixels.meanDifference(from: expected))
      }
    }
    #expect(differences.reduce(0, +) / Double(differences.count) < sampling.tolerance)
  }

  @Test(arguments: samplings) func `every size can be resized to every other`(sampling: Sampling) async throws {
    for round in 0..<8 {
      // The first once differed: the padding of a JPEG's last block counted as much as its pixels.
      let sides = round == 0 ? [26, 57, 1, 1] : (0..<4).map { _ in Int.random(in: 1...70) }
      let jpeg = file(sampling, sides[0], sides[1])
      let transform = Transform.with {
        ($0.width, $0.height, $0.fit, $0.enlarge) = (sides[2], sides[3], .fill, true)
      }
      let pixels = try await decoding.pixels(jpeg.file, transform)
      #expect((pixels.width, pixels.height) == (sides[2], sides[3]))
      let expected = try await decoding.pixels(jpeg.picture.png(), transform)
      #expect(pixels.meanDifference(from: expected) < 3, "\(sides)")
    }
  }
}

/// Vector code for the processor's full width must give the same results as code for every processor.
@Suite(.enabled(if: cvectors_is_wide() != 0, "the processor has no wide vectors"))
struct VectorTests {
  private let samples = (0..<(16 * 64)).map { _ in Float.random(in: -100...400) }
  private let weights = (0..<(64 * 10)).map { _ in Float.random(in: -0.5...1) }

  @Test(arguments: 0...16) func `weighted sums`(rows: Int) {
    var (wide, narrow) = ([Float](samples.prefix(64)), [Float](samples.prefix(64)))
    cvectors_add_rows_wide(&wide, samples, 64, weights, rows)
    cvectors_weighted_sums(&narrow, samples, 64, weights, rows)
    #expect(wide == narrow)
    for column in 0..<64 {
      let sum = (0..<rows).reduce(samples[column]) { $0 + samples[$1 * 64 + column] * weights[$1] }
      #expect(abs(wide[column] - sum) < 0.01)
    }
  }

  @Test func `rows are narrowed with the same sums`() {
    let firsts = (0..<60).map { Int32($0 * 54 / 59) }
    var columns = [Float](repeating: 0, count: 8 * 64)
    var (wide, narrow) = ([Float](repeating: 0, count: 8 * 60), [Float](repeating: 0, count: 8 * 60))
    samples.withUnsafeBufferPointer { samples in
      let rows = (0..<8).map { UnsafePointer?(samples.baseAddress! + 64 * $0) }
      cvectors_narrow_wide(rows, 64, &columns, firsts, weights, 10, 60, &wide)
      cvectors_transpose(rows, 64, &columns)
      cvectors_narrow_columns(columns, firsts, weights, 10, 60, &narrow)
    }
    #expect(wide == narrow)
    for (sample, first) in firsts.enumerated() {
      for row in 0..<8 {
        let sum = (0..<10).reduce(Float(0)) { $0 + samples[64 * row + Int(first) + $1] * weights[10 * sample + $1] }
        #expect(abs(wide[8 * sample + row] - sum) < 0.01)
      }
    }
  }
}

/// A triangle wave between 0 and 80.
private func hill(_ place: Int, _ length: Int) -> Int {
  let place = place % length
  return 160 * min(place, length - place) / length
}

/// Makes an image of bytes another size while its rows are read: with the filter that libvips has for it too, but
/// without the milliseconds that libvips takes to prepare for each image (Tests/Benchmarks/README.md).
///
/// Each band is resampled as a plane of its own, which need not have the size of the others.
final class Resampler {
  /// What the planes of the source are.
  enum Bands {
    /// What those of the result are.
    case plain
    /// Colours, and alpha in the last: they are weighted by it, those of transparent pixels count for nothing.
    case alphaLast
    /// Luma and two differences of colours, which become RGB (JFIF 1.02, page 3).
    case yCbCr
  }

  /// Which part of a plane is seen, in its samples. The ends may cut one.
  struct Part {
    var across: Range<Double>
    var down: Range<Double>
  }

  private static let mostPixels = 1 << 22
  /// Rows of interleaved bands that are added at once.
  private static let atOnce = 8

  /// Whether all that is held at a time is so little that memory is no concern. libvips holds but a few rows, whatever
  /// the size.
  static func holdsLittle(from source: (width: Int, height: Int), to result: (width: Int, height: Int)) -> Bool {
    // Where the height grows, nearly all rows of the result may be open, in the source's width.
    let width = result.height > source.height ? max(source.width, result.width) : result.width
    return width * result.height <= mostPixels
  }

  private let bands: Bands
  private let planes: [ResampledPlane]
  private let (width, height): (Int, Int)
  private var complete = 0
  /// Some rows of the result: a pixel in each lane, its first band in the lowest bits.
  private let pixels: UnsafeMutableBufferPointer<SIMD8<UInt32>>
  private let result: UnsafeMutableBufferPointer<UInt8>

  /// - Parameters:
  ///   - parts: of the planes, at most 4.
  ///   - atOnce: the most rows of a plane that are given before `addRows`.
  init(_ bands: Bands, _ parts: [Part], atOnce: Int, to size: (width: Int, height: Int)) {
    self.bands = bands
    (width, height) = size
    let lengths = parts.map { $0.down.upperBound - $0.down.lowerBound }
    let ratio = Int(((lengths.max() ?? 1) / (lengths.min() ?? 1)).rounded(.up))
    // Of a plane with fewer rows, the filter may want 3 more, and the fourth begun.
    planes = parts.map { ResampledPlane($0, atOnce: atOnce, ahead: ratio > 1 ? 4 * ratio : 0, to: size) }
    pixels = .allocate(capacity: size.width)
    // A pixel is written as four bytes.
    result = .allocate(capacity: size.width * size.height * parts.count + 3)
  }

  /// Of an image whose bands are interleaved.
  convenience init(
    _ bands: Bands, count: Int, from source: (width: Int, height: Int), to size: (width: Int, height: Int)
  ) {
    let part = Part(across: 0..<Double(source.width), down: 0..<Double(source.height))
    self.init(bands, [Part](repeating: part, count: count), atOnce: Self.atOnce, to: size)
  }

  deinit {
    pixels.deallocate()
    result.deallocate()
  }

  /// All rows, once all rows of the source that are of use have been added.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: result.baseAddress, count: result.count - 3) }

  var isComplete: Bool { complete == height }

  /// The next row of a plane from the top.
  func give(_ row: UnsafePointer<UInt8>, to plane: Int) { planes[plane].give(row, every: 1, weightedBy: nil) }

  /// The next row of interleaved bands from the top.
  func add(_ row: UnsafePointer<UInt8>) {
    let alpha = bands == .alphaLast ? row + planes.count - 1 : nil
    for (band, plane) in planes.enumerated() {
      plane.give(row + band, every: planes.count, weightedBy: band < planes.count - 1 ? alpha : nil)
    }
    if planes[0].given == Self.atOnce || planes[0].hasAll { addRows() }
  }

  /// Adds what was given. Planes that are not given all their rows at once are to be given the same part of the image.
  func addRows() {
    for plane in planes { plane.addRows() }
    while !isComplete {
      let numbers = complete..<min(complete + ResampledPlane.Lanes.scalarCount, height)
      guard planes.allSatisfy({ $0.has(numbers) }) else { return }
      finish(numbers)
    }
  }

  private func finish(_ rows: Range<Int>) {
    for plane in planes { plane.take(rows) }
    switch bands {
    case .plain: break
    case .alphaLast: unweight()
    case .yCbCr: toRGB()
    }
    write(rows)
    complete = rows.upperBound
  }

  private func write(_ rows: Range<Int>) {
    for sample in pixels.indices { pixels[sample] = planes[0].result[sample].rounded }
    for (band, plane) in planes.enumerated().dropFirst() {
      let shift = UInt32(8 * band)
      for sample in pixels.indices { pixels[sample] |= plane.result[sample].rounded &<< shift }
    }
    let size = planes.count
    for (lane, row) in rows.enumerated() {
      // What a pixel is written with beyond its size, the next one writes over.
      let place = UnsafeMutableRawPointer(result.baseAddress! + row * width * size)
      for sample in pixels.indices {
        place.storeBytes(of: pixels[sample][lane].littleEndian, toByteOffset: sample * size, as: UInt32.self)
      }
    }
  }

  private func unweight() {
    let alpha = planes[planes.count - 1].result
    for plane in planes.dropLast() {
      for index in plane.result.indices {
        let weight = alpha[index]
        plane.result[index] *= (255 / weight).replacing(with: 0, where: weight .<= 0)
      }
    }
  }

  private func toRGB() {
    let (first, second, third) = (planes[0].result, planes[1].result, planes[2].result)
    for index in first.indices {
      let (luma, blue, red) = (first[index], second[index] - 128, third[index] - 128)
      first[index] = luma + 1.402 * red
      second[index] = luma - 0.344136 * blue - 0.714136 * red
      third[index] = luma + 1.772 * blue
    }
  }
}

extension SIMD8<Float> {
  /// The nearest bytes.
  @inline(__always) fileprivate var rounded: SIMD8<UInt32> {
    let notBelow = replacing(with: 0, where: self .< 0)
    let inRange = notBelow.replacing(with: 255, where: notBelow .> 255)
    // Above 2^23 a Float has no fraction, so that its last bits are the rounded number.
    return unsafeBitCast(inRange + 0x1p23, to: SIMD8<UInt32>.self) & 0xFF
  }
}

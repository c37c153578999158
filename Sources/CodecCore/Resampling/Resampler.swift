/// Resizes an image of bytes while its rows are read, and passes on each row of the result when it is complete. It uses
/// the same filter as libvips, but without the milliseconds that libvips takes to prepare each image
/// (Tests/Benchmarks/README.md).
///
/// Each band is resampled as a separate plane, and the planes may differ in size.
package final class Resampler {
  /// The meaning of the source's planes.
  package enum Bands {
    /// The same as in the result.
    case plain
    /// Colours, with alpha in the last plane. Colours are weighted by alpha, so that transparent pixels do not
    /// contribute.
    case alphaLast
    /// Luma and two chroma planes, which become RGB (JFIF 1.02, page 3).
    case yCbCr
  }

  /// The visible part of a plane, in its samples. The ends may lie within a sample.
  package struct Part {
    var across: Range<Double>
    var down: Range<Double>
  }

  /// Takes a row of the result, which is valid during the call.
  package typealias Taker = (UnsafeRawBufferPointer) throws -> Void

  private static let maxPixels = 1 << 22
  /// The number of rows of interleaved bands that are processed at once.
  private static let atOnce = 8

  /// Whether resampling needs little memory at a time. libvips holds only a few rows, whatever the
  /// size.
  package static func needsLittleMemory(from source: (width: Int, height: Int), to result: (width: Int, height: Int))
    -> Bool
  {
    // If the height grows, nearly all rows of the result may be open, in the source's width.
    let width = result.height > source.height ? max(source.width, result.width) : result.width
    return width * result.height <= maxPixels
  }

  private let bands: Bands
  private let planes: [ResampledPlane]
  private let (width, height): (Int, Int)
  private var complete = 0
  /// Some rows of the result: one row in each lane, with the first band in the lowest bits.
  private let pixels: UnsafeMutableBufferPointer<SIMD8<UInt32>>
  /// The bytes of these rows.
  private let result: UnsafeMutableRawPointer

  /// - Parameters:
  ///   - parts: the visible parts of the planes, at most 4.
  ///   - atOnce: the maximum number of rows of a plane that are given before `addRows`.
  package init(_ bands: Bands, _ parts: [Part], atOnce: Int, to size: (width: Int, height: Int)) {
    self.bands = bands
    (width, height) = size
    let lengths = parts.map { $0.down.upperBound - $0.down.lowerBound }
    let ratio = Int(((lengths.max() ?? 1) / (lengths.min() ?? 1)).rounded(.up))
    // If a plane has fewer rows, the filter may need 3 more of them, and part of a fourth.
    planes = parts.map { ResampledPlane($0, atOnce: atOnce, ahead: ratio > 1 ? 4 * ratio : 0, to: size) }
    pixels = .allocate(capacity: size.width)
    // Three bytes more, because a pixel is written as four bytes.
    let count = size.width * ResampledPlane.Lanes.scalarCount * parts.count + 3
    result = .allocate(byteCount: count, alignment: MemoryLayout<UInt32>.alignment)
  }

  /// For an image with interleaved bands.
  package convenience init(
    _ bands: Bands, count: Int, from source: (width: Int, height: Int), to size: (width: Int, height: Int)
  ) {
    let part = Part(across: 0..<Double(source.width), down: 0..<Double(source.height))
    self.init(bands, [Part](repeating: part, count: count), atOnce: Self.atOnce, to: size)
  }

  deinit {
    pixels.deallocate()
    result.deallocate()
  }

  package var isComplete: Bool { complete == height }

  /// Passes the next rows of a plane, from the top.
  package func add(_ rows: UnsafePointer<UnsafeMutablePointer<UInt8>?>, count: Int, to plane: Int) {
    planes[plane].add(rows, count: count)
  }

  /// Adds the next row of interleaved bands, from the top.
  package func add(_ row: UnsafePointer<UInt8>, _ take: Taker) throws {
    let alpha = bands == .alphaLast ? row + planes.count - 1 : nil
    for (band, plane) in planes.enumerated() {
      plane.addRow(row + band, every: planes.count, weightedBy: band < planes.count - 1 ? alpha : nil)
    }
    if planes[0].given == Self.atOnce || planes[0].hasAll { try addRows(take) }
  }

  /// Processes the given rows. If planes are not given completely at once, they must be given the same part of the
  /// image.
  package func addRows(_ take: Taker) throws {
    for plane in planes { plane.addRows() }
    while !isComplete {
      let numbers = complete..<min(complete + ResampledPlane.Lanes.scalarCount, height)
      guard planes.allSatisfy({ $0.has(numbers) }) else { return }
      try finish(numbers, take)
    }
  }

  private func finish(_ rows: Range<Int>, _ take: Taker) throws {
    for plane in planes { plane.writeRows(rows) }
    switch bands {
    case .plain: break
    case .alphaLast: unweight()
    case .yCbCr: toRGB()
    }
    write(rows.count)
    complete = rows.upperBound
    let length = width * planes.count
    for row in 0..<rows.count { try take(UnsafeRawBufferPointer(start: result + row * length, count: length)) }
  }

  private func write(_ count: Int) {
    for sample in pixels.indices { pixels[sample] = planes[0].result[sample].rounded }
    for (band, plane) in planes.enumerated().dropFirst() {
      let shift = UInt32(8 * band)
      for sample in pixels.indices { pixels[sample] |= plane.result[sample].rounded &<< shift }
    }
    let size = planes.count
    for lane in 0..<count {
      // Excess bytes of a pixel are overwritten by the next pixel.
      let place = result + lane * width * size
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
  /// The values rounded to bytes.
  @inline(__always) fileprivate var rounded: SIMD8<UInt32> {
    let notBelow = replacing(with: 0, where: self .< 0)
    let inRange = notBelow.replacing(with: 255, where: notBelow .> 255)
    // A Float above 2^23 has no fraction, so its lowest bits are the rounded integer.
    return unsafeBitCast(inRange + 0x1p23, to: SIMD8<UInt32>.self) & 0xFF
  }
}

/// Makes an image of bytes another size while its rows are read: with the filter that libvips has for it too, but
/// without the milliseconds that libvips takes to prepare for each image (Tests/Benchmarks/README.md).
///
/// A row is added to all rows of the result that it is part of, in its full width; a row that is complete is given its
/// final width then.
final class Resampler {
  private typealias Piece = SIMD4<Float>
  private static let mostPixels = 1 << 22

  /// Whether all that is held at a time is so little that memory is no concern. libvips holds but a few rows, whatever
  /// the size.
  static func holdsLittle(from source: (width: Int, height: Int), to result: (width: Int, height: Int)) -> Bool {
    // Where the height grows, nearly all rows of the result may be open, in the source's width.
    let width = result.height > source.height ? max(source.width, result.width) : result.width
    return width * result.height <= mostPixels
  }

  private let channels: Int
  /// Whether the last channel is alpha: colours are weighted by it, those of transparent pixels count for nothing.
  private let hasAlpha: Bool
  private let (across, down): (Lanczos, Lanczos)
  /// Samples of a row of the source, and of the result.
  private let (sourceCount, count): (Int, Int)
  /// How many pieces hold a row of the source, and one more, since the last pixel is read as a whole piece.
  private let pieces: Int
  /// Rows of the source that are not added yet: as many as can be, since each addition goes over the sums.
  private let waiting: UnsafeMutablePointer<Piece>
  private static let mostWaiting = 4
  private var added = 0
  private var index = 0
  /// The result's rows that are begun and not complete, each in the place of its number modulo `mostOpen`.
  private let open: UnsafeMutablePointer<Piece>
  private let mostOpen: Int
  private var (begun, complete) = (0, 0)
  private let result: UnsafeMutableBufferPointer<UInt8>

  /// - Parameters:
  ///   - channels: of a pixel, at most 4.
  ///   - lengths: of the source in its pixels. Rows have all of their last pixel, and so has the image its last row.
  init(
    channels: Int, hasAlpha: Bool = false, from lengths: (across: Double, down: Double),
    to size: (width: Int, height: Int)
  ) {
    (self.channels, self.hasAlpha) = (channels, hasAlpha)
    across = Lanczos(from: lengths.across, to: size.width)
    down = Lanczos(from: lengths.down, to: size.height)
    sourceCount = Int(lengths.across.rounded(.up)) * channels
    count = size.width * channels
    pieces = (sourceCount + 3) / 4 + 1
    mostOpen = down.mostOpen(during: Self.mostWaiting)
    waiting = .allocate(capacity: pieces * Self.mostWaiting)
    waiting.initialize(repeating: .zero, count: pieces * Self.mostWaiting)
    open = .allocate(capacity: pieces * mostOpen)
    open.initialize(repeating: .zero, count: pieces * mostOpen)
    // A pixel is written as four samples.
    result = .allocate(capacity: count * size.height + 4)
  }

  deinit {
    waiting.deallocate()
    open.deallocate()
    result.deallocate()
  }

  /// How many rows from the top are of use.
  var rowCount: Int { down.spans.last?.upperBound ?? 0 }

  /// All rows, once `rowCount` of the source have been added.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: result.baseAddress, count: result.count - 4) }

  /// The next row from the top.
  func add(_ row: UnsafePointer<UInt8>) {
    let sourceCount = sourceCount
    (waiting + (index - added) * pieces).withMemoryRebound(to: Float.self, capacity: pieces * Piece.scalarCount) {
      for offset in 0..<sourceCount { $0[offset] = Float(row[offset]) }
      if hasAlpha { weighByAlpha($0) }
    }
    index += 1
    guard index - added == Self.mostWaiting || index == rowCount else { return }
    while begun < down.spans.count, down.spans[begun].lowerBound < index { begun += 1 }
    for number in complete..<begun { addWaiting(to: number) }
    added = index
    while complete < begun, down.spans[complete].upperBound <= index { finish() }
  }

  private func weighByAlpha(_ row: UnsafeMutablePointer<Float>) {
    for pixel in stride(from: 0, to: sourceCount, by: channels) {
      let weight = row[pixel + channels - 1] / 255
      for color in pixel..<(pixel + channels - 1) { row[color] *= weight }
    }
  }

  private func place(of number: Int) -> UnsafeMutablePointer<Piece> { open + number % mostOpen * pieces }

  private func addWaiting(to number: Int) {
    let sums = place(of: number)
    let (first, second, third, fourth) = (waiting, waiting + pieces, waiting + 2 * pieces, waiting + 3 * pieces)
    // Those of rows that are not there are 0.
    var weights = Piece.zero
    for row in 0..<Self.mostWaiting { weights[row] = down.weight(of: added + row, in: number) }
    for piece in 0..<pieces {
      let upper = first[piece] * weights[0] + second[piece] * weights[1]
      let lower = third[piece] * weights[2] + fourth[piece] * weights[3]
      sums[piece] += upper + lower
    }
  }

  private func finish() {
    let row = place(of: complete)
    narrow(UnsafeRawPointer(row), into: result.baseAddress! + complete * count)
    row.update(repeating: .zero, count: pieces)
    complete += 1
  }

  /// Four samples are taken at a time, of which as many count as a pixel has.
  private func narrow(_ row: UnsafeRawPointer, into bytes: UnsafeMutablePointer<UInt8>) {
    let size = channels * MemoryLayout<Float>.stride
    var bytes = UnsafeMutableRawPointer(bytes)
    across.weights.withUnsafeBufferPointer { weights in
      var next = 0
      for span in across.spans {
        var samples = row + span.lowerBound * size
        // Two sums, as the next addition to one would have to wait for the last.
        var (even, odd) = (Piece.zero, Piece.zero)
        let end = next + span.count
        while next + 1 < end {
          even += samples.loadUnaligned(as: Piece.self) * weights[next]
          odd += samples.loadUnaligned(fromByteOffset: size, as: Piece.self) * weights[next + 1]
          samples += 2 * size
          next += 2
        }
        if next < end {
          even += samples.loadUnaligned(as: Piece.self) * weights[next]
          next += 1
        }
        var sum = even + odd
        if hasAlpha {
          let alpha = sum[channels - 1]
          sum *= alpha > 0 ? 255 / alpha : 0
          sum[channels - 1] = alpha
        }
        bytes.storeBytes(of: sum.rounded, as: SIMD4<UInt8>.self)
        bytes += channels
      }
    }
  }
}

extension SIMD4<Float> {
  /// The nearest bytes.
  fileprivate var rounded: SIMD4<UInt8> {
    let notBelow = replacing(with: 0, where: self .< 0)
    let inRange = notBelow.replacing(with: 255, where: notBelow .> 255)
    // Above 2^23 a Float has no fraction, so that its last bits are the rounded number.
    return SIMD4<UInt8>(truncatingIfNeeded: unsafeBitCast(inRange + 0x1p23, to: SIMD4<UInt32>.self))
  }
}

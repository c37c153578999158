internal import CVectors

/// One band of an image that gets another size while its rows are read.
///
/// A row is added to all rows of the result that it is part of, in its full width. Rows that are complete are given
/// their final width when they are taken, several at a time.
final class ResampledPlane {
  /// A sample of as many rows.
  typealias Lanes = SIMD8<Float>
  /// Memory for rows comes in such steps.
  private static let step = 32

  private let (across, down): (Lanczos, Lanczos)
  /// The source's samples of a row, and rows, that are of use.
  private let (samples, rows): (Range<Int>, Range<Int>)
  /// Of a row in memory: its samples, and then zeros, of which the filter reads some.
  private let length: Int
  /// How many rows of the source have been seen, of use or not.
  private var seen = 0
  /// Rows that are not added yet, from the one with the number `next` on.
  private let waiting: UnsafeMutablePointer<Float>
  private(set) var given = 0
  private var next: Int
  /// The result's rows that are begun and not taken, each in the place of its number modulo `mostOpen`.
  private let open: UnsafeMutablePointer<Float>
  private let mostOpen: Int
  private var (begun, taken) = (0, 0)
  /// Where the filter begins for each sample of the result.
  private let firsts: [Int32]
  private let columns: UnsafeMutablePointer<Float>
  /// The rows that were taken last, sample by sample.
  let result: UnsafeMutableBufferPointer<Lanes>

  /// - Parameters:
  ///   - atOnce: the most rows that are given before they are added.
  ///   - ahead: by how many rows this plane may be ahead of those with which it is taken.
  init(_ part: Resampler.Part, atOnce: Int, ahead: Int, to size: (width: Int, height: Int)) {
    across = .cached(from: part.across, to: size.width)
    down = .cached(from: part.down, to: size.height)
    (samples, rows) = (across.covered, down.covered)
    next = rows.lowerBound
    length = (samples.count + across.taps + Self.step - 1) / Self.step * Self.step
    waiting = .allocate(capacity: length * atOnce)
    waiting.initialize(repeating: 0, count: length * atOnce)
    mostOpen = down.mostOpen(during: atOnce + ahead) + Lanes.scalarCount
    open = .allocate(capacity: length * mostOpen)
    let first = samples.lowerBound
    firsts = across.spans.map { Int32($0.lowerBound - first) }
    columns = .allocate(capacity: length * Lanes.scalarCount)
    result = .allocate(capacity: size.width)
  }

  deinit {
    waiting.deallocate()
    open.deallocate()
    columns.deallocate()
    result.deallocate()
  }

  // MARK: Rows of the source

  /// Whether no row is of use beside those that were given.
  var hasAll: Bool { next + given == rows.upperBound }

  /// The next row from the top.
  ///
  /// - Parameters:
  ///   - stride: from one sample of this band to the next.
  ///   - alpha: of the same pixels, where it weights them.
  func give(_ row: UnsafePointer<UInt8>, every stride: Int, weightedBy alpha: UnsafePointer<UInt8>?) {
    seen += 1
    guard rows.contains(seen - 1) else { return }
    let (place, count, offset) = (waiting + given * length, samples.count, samples.lowerBound * stride)
    let row = row + offset
    if let alpha = alpha.map({ $0 + offset }) {
      for index in 0..<count { place[index] = Float(row[index * stride]) * (Float(alpha[index * stride]) / 255) }
    } else if stride == 1 {
      for index in 0..<count { place[index] = Float(row[index]) }
    } else {
      for index in 0..<count { place[index] = Float(row[index * stride]) }
    }
    given += 1
  }

  func addRows() {
    let end = next + given
    while begun < down.spans.count, down.spans[begun].lowerBound < end {
      place(of: begun).initialize(repeating: 0, count: length)
      begun += 1
    }
    precondition(begun - taken <= mostOpen)
    for number in taken..<begun { addWaiting(to: number) }
    (next, given) = (end, 0)
  }

  private func place(of number: Int) -> UnsafeMutablePointer<Float> { open + number % mostOpen * length }

  private func addWaiting(to number: Int) {
    let span = down.spans[number]
    let some = span.clamped(to: next..<(next + given))
    let rows = waiting + (some.lowerBound - next) * length
    down.weights.withUnsafeBufferPointer {
      let weights = $0.baseAddress! + number * down.taps + some.lowerBound - span.lowerBound
      cvectors_add_rows(place(of: number), rows, length, weights, some.count)
    }
  }

  // MARK: Rows of the result

  /// Whether these rows, which come next, can be taken.
  func has(_ numbers: Range<Int>) -> Bool { down.spans[numbers.upperBound - 1].upperBound <= next }

  /// Puts these rows of the result into `result`: at most as many as there are lanes, the rest of which is of no use.
  func take(_ numbers: Range<Int>) {
    let last = numbers.upperBound - 1
    let rows = (numbers.lowerBound..<(numbers.lowerBound + Lanes.scalarCount)).map {
      UnsafePointer?(place(of: min($0, last)))
    }
    let result = UnsafeMutableRawPointer(result.baseAddress!).assumingMemoryBound(to: Float.self)
    cvectors_narrow(rows, length, columns, firsts, across.weights, across.taps, firsts.count, result)
    taken = numbers.upperBound
  }
}

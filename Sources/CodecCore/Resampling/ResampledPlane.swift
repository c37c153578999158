internal import CVectors

/// One band of an image that is resized while its rows are read.
///
/// A source row is added to all result rows to which it contributes, in its full width. Complete rows are resized to
/// their final width when they are taken, several at a time.
final class ResampledPlane {
  /// One sample from each of as many rows.
  typealias Lanes = SIMD8<Float>
  /// The length of a row in memory is a multiple of this.
  private static let step = 32

  private let (across, down): (Lanczos, Lanczos)
  /// The source samples of a row, and the source rows, that are used.
  private let (samples, rows): (Range<Int>, Range<Int>)
  /// The length of a row in memory: its samples, then zeros, some of which the filter reads.
  private let length: Int
  /// The number of source rows seen so far, used or not.
  private var seen = 0
  /// The rows that are not yet added, starting with number `next`.
  private let waiting: UnsafeMutablePointer<Float>
  private(set) var given = 0
  private var next: Int
  /// The samples of the result rows that are started and not taken, each row at its number modulo `maxOpen`.
  private let open: UnsafeMutablePointer<Float>
  private let maxOpen: Int
  private var openRows = 0..<0
  /// The first source sample for each sample of the result.
  private let firsts: [Int32]
  private let columns: UnsafeMutablePointer<Float>
  /// The rows taken last, sample by sample.
  let result: UnsafeMutableBufferPointer<Lanes>

  /// - Parameters:
  ///   - atOnce: the maximum number of rows that are given before they are added.
  ///   - ahead: the number of rows by which this plane may be ahead of the planes with which it is taken.
  init(_ part: Resampler.Part, atOnce: Int, ahead: Int, to size: (width: Int, height: Int)) {
    across = .cached(from: part.across, to: size.width)
    down = .cached(from: part.down, to: size.height)
    (samples, rows) = (across.covered, down.covered)
    next = rows.lowerBound
    length = (samples.count + across.taps + Self.step - 1) / Self.step * Self.step
    waiting = Self.rows(atOnce, of: length)
    waiting.initialize(repeating: 0, count: length * atOnce)
    maxOpen = down.maxOpen(during: atOnce + ahead) + Lanes.scalarCount
    open = Self.rows(maxOpen, of: length)
    let first = samples.lowerBound
    firsts = across.spans.map { Int32($0.lowerBound - first) }
    columns = Self.rows(Lanes.scalarCount, of: length)
    result = .allocate(capacity: size.width)
  }

  /// Rows that begin with a vector of the processor.
  private static func rows(_ count: Int, of length: Int) -> UnsafeMutablePointer<Float> {
    let bytes = count * length * MemoryLayout<Float>.size
    return UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64).assumingMemoryBound(to: Float.self)
  }

  deinit {
    waiting.deallocate()
    open.deallocate()
    columns.deallocate()
    result.deallocate()
  }

  // MARK: Rows of the source

  /// Whether no further row is used.
  var hasAll: Bool { next + given == rows.upperBound }

  /// Passes the next row, from the top.
  ///
  /// - Parameters:
  ///   - stride: the distance from one sample of this band to the next.
  ///   - alpha: the alpha of the same pixels, if it weights them.
  func addRow(_ row: UnsafePointer<UInt8>, every stride: Int, weightedBy alpha: UnsafePointer<UInt8>?) {
    seen += 1
    guard rows.contains(seen - 1) else { return }
    let offset = samples.lowerBound * stride
    cvectors_samples(row + offset, alpha.map { $0 + offset }, stride, samples.count, waiting + given * length)
    given += 1
  }

  /// Passes the next rows of a plane that is stored alone.
  func add(_ rows: UnsafePointer<UnsafeMutablePointer<UInt8>?>, count: Int) {
    for row in 0..<count { addRow(rows[row]!, every: 1, weightedBy: nil) }
  }

  func addRows() {
    let end = next + given
    var begun = openRows.upperBound
    while begun < down.spans.count, down.spans[begun].lowerBound < end {
      place(of: begun).initialize(repeating: 0, count: length)
      begun += 1
    }
    openRows = openRows.lowerBound..<begun
    precondition(openRows.count <= maxOpen)
    for number in openRows { addWaiting(to: number) }
    (next, given) = (end, 0)
  }

  private func place(of number: Int) -> UnsafeMutablePointer<Float> { open + number % maxOpen * length }

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

  /// Whether these rows, which must be the next ones, are complete.
  func has(_ numbers: Range<Int>) -> Bool { down.spans[numbers.upperBound - 1].upperBound <= next }

  /// Puts these result rows into `result`: at most as many as there are lanes; the other lanes are unused.
  func writeRows(_ numbers: Range<Int>) {
    let last = numbers.upperBound - 1
    let rows = (numbers.lowerBound..<(numbers.lowerBound + Lanes.scalarCount)).map {
      UnsafePointer?(place(of: min($0, last)))
    }
    let result = UnsafeMutableRawPointer(result.baseAddress!).assumingMemoryBound(to: Float.self)
    cvectors_narrow(rows, length, columns, firsts, across.weights, across.taps, firsts.count, result)
    openRows = numbers.upperBound..<openRows.upperBound
  }
}

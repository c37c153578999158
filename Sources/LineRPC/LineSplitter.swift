internal import Platform

/// Cuts a stream of bytes into lines.
///
/// LF ends a line. One CR before it and one byte order mark at the start of the stream are dropped, lines of white
/// space only are skipped, and a last line without LF counts. Of a line that is too long nothing is kept.
public struct LineSplitter: Sendable {
  public enum Line {
    /// Valid only during the call that it is passed to. Never empty.
    case text(UnsafeRawBufferPointer)
    /// Comes once for such a line, as soon as it is known to be one.
    case tooLong
  }

  private let maxLine: Int
  /// The beginning of a line whose end has not come. A byte more than `maxLine` at most: that may be the CR.
  private var beginning: [UInt8] = []
  private var isSkipping = false
  /// How much of a byte order mark has come; nil once something else has.
  private var markLength: Int? = 0

  private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
  /// A buffer that has grown beyond this is given back once its line is done.
  private static let keptCapacity = 1 << 17

  /// - Parameter maxLine: the longest line in bytes, less its line end and the byte order mark.
  public init(maxLine: Int) {
    self.maxLine = maxLine
  }

  /// Takes the next bytes of the stream and passes on the lines that end in them.
  public mutating func feed(_ chunk: UnsafeRawBufferPointer, _ body: (Line) -> Void) {
    var rest = droppingMark(chunk)
    while !rest.isEmpty {
      guard let end = rest.firstLineFeed else { return keep(rest, body) }
      let piece = UnsafeRawBufferPointer(rebasing: rest[..<end])
      rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
      if isSkipping {
        isSkipping = false
      } else if beginning.isEmpty {
        deliver(piece, body)
      } else {
        keep(piece, body)
        deliverBeginning(body)
        isSkipping = false
      }
    }
  }

  /// The stream has ended: passes on the last line if it had no line end.
  public mutating func finish(_ body: (Line) -> Void) {
    beginning.append(contentsOf: Self.mark.prefix(markLength ?? 0))
    markLength = nil
    deliverBeginning(body)
    isSkipping = false
  }

  private mutating func droppingMark(_ chunk: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard var length = markLength else { return chunk }
    var index = 0
    while index < chunk.count, length < 3, chunk[index] == Self.mark[length] {
      index += 1
      length += 1
    }
    markLength = length
    if length == 3 || index < chunk.count {
      markLength = nil
      if length < 3 { beginning.append(contentsOf: Self.mark.prefix(length)) }
    }
    return UnsafeRawBufferPointer(rebasing: chunk[index...])
  }

  private mutating func keep(_ piece: UnsafeRawBufferPointer, _ body: (Line) -> Void) {
    if isSkipping || piece.isEmpty { return }
    let excess = beginning.count + piece.count - 1
    if excess > maxLine || (excess == maxLine && piece.last != UInt8(ascii: "\r")) {
      isSkipping = true
      beginning = []
      body(.tooLong)
    } else {
      beginning.append(contentsOf: piece)
    }
  }

  private mutating func deliverBeginning(_ body: (Line) -> Void) {
    beginning.withUnsafeBytes { deliver($0, body) }
    if beginning.capacity > Self.keptCapacity {
      beginning = []
    } else {
      beginning.removeAll(keepingCapacity: true)
    }
  }

  private func deliver(_ line: UnsafeRawBufferPointer, _ body: (Line) -> Void) {
    let text = line.last == UInt8(ascii: "\r") ? UnsafeRawBufferPointer(rebasing: line.dropLast()) : line
    if text.count > maxLine {
      body(.tooLong)
    } else if !text.isBlank {
      body(.text(text))
    }
  }
}

extension UnsafeRawBufferPointer {
  fileprivate var firstLineFeed: Int? {
    guard let start = baseAddress, let found = memchr(start, 0x0A, count) else { return nil }
    return UnsafeRawPointer(found) - start
  }

  fileprivate var isBlank: Bool {
    allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
  }
}

internal import Platform
internal import Threads

/// A thread that reads lines from a descriptor and decodes them, so that the thread that handles them does not.
///
/// The lines of one read are passed on as one batch, in their order. While `handle` blocks, nothing is read, and the
/// pipe blocks the sender: memory is bounded by one read and one line.
public final class LineReader: Sendable {
  /// The reason why reading ended.
  public enum End: Sendable, Equatable {
    case endOfInput
    /// read(2) failed with this errno.
    case failed(Int32)
  }

  private static let readSize = 1 << 13

  private let descriptor: Int32
  private let maxLine: Int
  private let handle: @Sendable ([Incoming]) -> Void
  private let onEnd: @Sendable (End) -> Void

  /// Starts reading. The thread ends after `onEnd`, and not before.
  ///
  /// - Parameters:
  ///   - descriptor: remains the caller's, and must stay open until `onEnd`. It may be non-blocking.
  ///   - maxLine: in bytes. A longer line is passed on as a refused call.
  ///   - handle: called on the reader's thread; never with an empty array.
  ///   - onEnd: called once on the reader's thread, after all lines.
  @discardableResult
  public init(
    descriptor: Int32, maxLine: Int,
    handle: @escaping @Sendable ([Incoming]) -> Void,
    onEnd: @escaping @Sendable (End) -> Void
  ) {
    self.descriptor = descriptor
    self.maxLine = maxLine
    self.handle = handle
    self.onEnd = onEnd
    startThread(name: "line reader") { [self] in onEnd(run()) }
  }

  private func run() -> End {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readSize, alignment: 16)
    defer { buffer.deallocate() }
    var splitter = LineSplitter(maxLine: maxLine)
    while true {
      switch readInput(descriptor, into: buffer) {
      case .success(0):
        handOver { splitter.finish($0) }
        return .endOfInput
      case .success(let count):
        handOver { splitter.feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]), $0) }
      case .failure(let error):
        return .failed(error.number)
      }
    }
  }

  private func handOver(_ split: ((LineSplitter.Line) -> Void) -> Void) {
    var batch: [Incoming] = []
    split { line in
      switch line {
      case .text(let text): batch.append(Incoming(line: text))
      case .tooLong: batch.append(.tooLong(limit: maxLine))
      }
    }
    if !batch.isEmpty { handle(batch) }
  }
}

/// Splits a stream of bytes into lines.
///
/// LF ends a line. One CR before it and a byte order mark at the start of the stream are dropped. Lines of white space
/// only are skipped, and a last line without LF counts. A line that is too long is discarded.
public struct LineSplitter: Sendable {
  public enum Line {
    /// Valid during the call only. Never empty.
    case text(UnsafeRawBufferPointer)
    /// Reported once for each such line, as soon as it is too long.
    case tooLong
  }

  private let maxLine: Int
  /// The start of a line whose end has not arrived. It may be one byte longer than `maxLine`, since that byte may be
  /// the CR.
  private var partialLine: [UInt8] = []
  private var isSkipping = false
  /// Number of bytes of the byte order mark that have arrived; nil once the mark is complete or absent.
  private var markLength: Int? = 0

  private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
  /// A larger buffer is released once its line is complete.
  private static let keptCapacity = 1 << 17

  /// - Parameter maxLine: the longest line in bytes, without its line end and the byte order mark.
  public init(maxLine: Int) {
    self.maxLine = maxLine
  }

  /// Consumes the next bytes of the stream, and passes on the lines that end in them.
  public mutating func feed(_ chunk: UnsafeRawBufferPointer, _ body: (Line) -> Void) {
    var rest = withoutByteOrderMark(chunk)
    while !rest.isEmpty {
      guard let end = rest.firstLineFeed else { return store(rest, body) }
      let piece = UnsafeRawBufferPointer(rebasing: rest[..<end])
      rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
      if isSkipping {
        isSkipping = false
      } else if partialLine.isEmpty {
        deliver(piece, body)
      } else {
        store(piece, body)
        deliverPartialLine(body)
        isSkipping = false
      }
    }
  }

  /// Ends the stream: passes on the last line if it has no line end.
  public mutating func finish(_ body: (Line) -> Void) {
    partialLine.append(contentsOf: Self.mark.prefix(markLength ?? 0))
    markLength = nil
    deliverPartialLine(body)
    isSkipping = false
  }

  private mutating func withoutByteOrderMark(_ chunk: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard var length = markLength else { return chunk }
    var index = 0
    while index < chunk.count, length < 3, chunk[index] == Self.mark[length] {
      index += 1
      length += 1
    }
    markLength = length
    if length == 3 || index < chunk.count {
      markLength = nil
      if length < 3 { partialLine.append(contentsOf: Self.mark.prefix(length)) }
    }
    return UnsafeRawBufferPointer(rebasing: chunk[index...])
  }

  private mutating func store(_ piece: UnsafeRawBufferPointer, _ body: (Line) -> Void) {
    if isSkipping || piece.isEmpty { return }
    let excess = partialLine.count + piece.count - 1
    if excess > maxLine || (excess == maxLine && piece.last != UInt8(ascii: "\r")) {
      isSkipping = true
      partialLine = []
      body(.tooLong)
    } else {
      partialLine.append(contentsOf: piece)
    }
  }

  private mutating func deliverPartialLine(_ body: (Line) -> Void) {
    partialLine.withUnsafeBytes { deliver($0, body) }
    if partialLine.capacity > Self.keptCapacity {
      partialLine = []
    } else {
      partialLine.removeAll(keepingCapacity: true)
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
    guard let start = baseAddress, let address = memchr(start, 0x0A, count) else { return nil }
    return UnsafeRawPointer(address) - start
  }

  fileprivate var isBlank: Bool {
    allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
  }
}

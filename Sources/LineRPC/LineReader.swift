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
  private let observe: (@Sendable (LineSplitter.Line) -> Void)?
  private let handle: @Sendable ([Incoming]) -> Void
  private let onEnd: @Sendable (End) -> Void

  /// Starts reading. The thread ends after `onEnd`, and not before.
  ///
  /// - Parameters:
  ///   - descriptor: remains the caller's, and must stay open until `onEnd`. It may be non-blocking.
  ///   - maxLine: in bytes. A longer line is passed on as a refused call.
  ///   - observe: called on the reader's thread with each line, before the batch that contains it.
  ///   - handle: called on the reader's thread; never with an empty array.
  ///   - onEnd: called once on the reader's thread, after all lines.
  @discardableResult
  public init(
    descriptor: Int32, maxLine: Int, observe: (@Sendable (LineSplitter.Line) -> Void)? = nil,
    handle: @escaping @Sendable ([Incoming]) -> Void,
    onEnd: @escaping @Sendable (End) -> Void
  ) {
    self.descriptor = descriptor
    self.maxLine = maxLine
    self.observe = observe
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
      observe?(line)
      switch line {
      case .text(let text): batch.append(Incoming(line: text))
      case .tooLong: batch.append(.tooLong(limit: maxLine))
      }
    }
    if !batch.isEmpty { handle(batch) }
  }
}

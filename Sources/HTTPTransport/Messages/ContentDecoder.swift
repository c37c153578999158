internal import CZlib

/// Undoes a content coding (RFC 9110 section 8.4.1), piece by piece, by the bytes rather than by the coding's name.
///
/// It reads gzip (RFC 1952), of one member or more, zlib's format (RFC 1950), and for `deflate` the stream within that
/// (RFC 1951), which some servers send. Content that is not coded although its server says so passes as it is. Curl
/// could decompress, but takes a stream that breaks off for a whole one (until 8.11).
final class ContentDecoder {
  /// What a receiver says to what it was given.
  enum Demand {
    case more
    /// More, but not now.
    case later
    case none
  }

  enum Outcome {
    case done
    /// The receiver wants the rest later: the same bytes are to be offered again, with more behind them or not.
    case paused
    /// The receiver wants no more.
    case stopped
    /// The content has ended. All that follows is padding.
    case ended
    /// The bytes are neither content nor in a coding that is known.
    case unknown
    /// The compressed stream is damaged.
    case malformed
  }

  private enum Form { case undecided, plain, compressed, ended, unknown }

  /// What requests say is understood.
  static let accepted = "gzip, deflate"

  private let coding: String
  private let isContent: TransferRequest.ContentTest?
  private var form = Form.undecided
  /// The first bytes, until they tell the form.
  private var prefix: [UInt8] = []
  /// The number of bytes already read of those that will be offered again.
  private var readBefore = 0
  /// It must not move: zlib's state knows where it is. Nil until there is something to decompress.
  private var stream: UnsafeMutablePointer<z_stream>?
  private lazy var output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
  private var isGzip = false
  private var isAtEnd = false
  /// Whether a member of gzip has ended before the one that is being read.
  private var hasMember = false

  /// - Parameters:
  ///   - coding: as in Content-Encoding, in lower case.
  ///   - isContent: whether bytes begin like the content; nil if nothing is known about it.
  init(_ coding: String, isContent: TransferRequest.ContentTest?) {
    self.coding = coding
    self.isContent = isContent
  }

  deinit {
    guard let stream else { return }
    inflateEnd(stream)
    stream.deallocate()
    output.deallocate()
  }

  /// Whether the content has ended where the bytes so far end. A body of no bytes is content of none.
  var isComplete: Bool {
    switch form {
    case .undecided: prefix.isEmpty
    case .plain, .ended: true
    case .unknown: false
    // Zlib looks at a header when it has four bytes of it: fewer are padding behind a member.
    case .compressed: isAtEnd || hasMember && stream?.pointee.total_in ?? 0 < 4
    }
  }

  /// - Parameter receive: gets what the bytes stand for, up to 64 kB at a time. A few bytes may come after `later`.
  func decode(_ offered: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Demand) -> Outcome {
    let known = min(readBefore, offered.count)
    readBefore -= known
    let bytes = UnsafeRawBufferPointer(rebasing: offered[known...])
    if form == .undecided {
      let start = prefix + bytes.prefix(TransferRequest.longestContentTest)
      guard let decision = decide(by: start) else {
        prefix = start
        return .done
      }
      form = decision
      // These few bytes will not be offered again, so a pause has to wait for them.
      let outcome = prefix.withUnsafeBytes { pass($0) { receive($0) == .none ? .none : .more } }
      guard case .done = outcome else { return outcome }
    }
    let outcome = pass(bytes, to: receive)
    if case .paused = outcome, let stream { readBefore = offered.count - Int(stream.pointee.avail_in) }
    return outcome
  }

  /// The form of a body with those first bytes; nil if more are needed.
  private func decide(by start: [UInt8]) -> Form? {
    guard start.count > 1 else { return nil }
    if start[0] == 0x1f, start[1] == 0x8b { return begin(windowBits: 15 + 16) }
    let isKnown = ["gzip", "x-gzip", "deflate"].contains(coding)
    // RFC 1950 section 2.2.
    let isZlib = start[0] & 0x0f == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
    if isKnown, isZlib { return begin(windowBits: 15) }
    guard let isContent else { return coding == "deflate" ? begin(windowBits: -15) : .unknown }
    guard let isPlain = isContent(start[...]) else { return nil }
    return isPlain ? .plain : coding == "deflate" ? begin(windowBits: -15) : .unknown
  }

  private func begin(windowBits: Int32) -> Form {
    let new = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    new.initialize(to: z_stream())
    guard inflateInit2_(new, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      // Memory is short.
      new.deallocate()
      return .unknown
    }
    stream = new
    isGzip = windowBits > 15
    return .compressed
  }

  private func pass(_ bytes: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Demand) -> Outcome {
    if form == .unknown { return .unknown }
    guard !bytes.isEmpty else { return .done }
    switch form {
    case .compressed: return inflate(bytes, to: receive)
    case .plain: return receive(bytes) == .none ? .stopped : .done
    case .ended: return .ended
    case .undecided, .unknown: return .unknown
    }
  }

  private func inflate(_ bytes: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Demand) -> Outcome {
    guard let stream else { return .malformed }
    stream.pointee.next_in = bytes.bindMemory(to: UInt8.self).baseAddress
    stream.pointee.avail_in = UInt32(bytes.count)
    repeat {
      if isAtEnd {
        guard isGzip, inflateReset(stream) == Z_OK else { return end() }
        isAtEnd = false
        hasMember = true
      }
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      let code = CZlib.inflate(stream, Z_NO_FLUSH)
      // Nothing to do is no error (Z_BUF_ERROR): the output was full, and all that was to come had.
      guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
        return hasMember && stream.pointee.total_out == 0 ? end() : .malformed
      }
      isAtEnd = code == Z_STREAM_END
      let count = output.count - Int(stream.pointee.avail_out)
      guard count > 0 else { continue }
      switch receive(UnsafeRawBufferPointer(rebasing: output[..<count])) {
      case .more: break
      case .later:
        // What zlib holds back of bytes that it has read is one match at most (258 bytes); it goes the same way.
        if stream.pointee.avail_in > 0 { return .paused }
      case .none: return .stopped
      }
    } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0 && !isAtEnd
    return .done
  }

  private func end() -> Outcome {
    form = .ended
    return .ended
  }
}

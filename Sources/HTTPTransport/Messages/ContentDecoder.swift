internal import CZlib

/// Decodes a content coding (RFC 9110 section 8.4.1) piece by piece. The bytes decide the format, rather than the
/// coding's name.
///
/// Formats: gzip (RFC 1952) of one or more members, zlib (RFC 1950), and for `deflate` the raw stream (RFC 1951), which
/// some servers send. Content that is not coded although its header says so passes unchanged. Curl's own decompression
/// is not used, since until 8.11 it accepts a stream that breaks off.
final class ContentDecoder {
  /// The answer of a receiver to a piece.
  enum Demand {
    case more
    /// More, but only after a pause.
    case later
    case none
  }

  enum Outcome {
    case done
    /// The receiver wants the rest later: the same bytes must be offered again, with or without more after them.
    case paused
    /// The receiver wants no more.
    case stopped
    /// The content has ended. All further bytes are padding.
    case ended
    /// The bytes are neither content nor in a known coding.
    case unknown
    /// The compressed stream is damaged.
    case malformed
  }

  private enum Form { case undecided, plain, compressed, ended, unknown }

  /// Value of Accept-Encoding.
  static let accepted = "gzip, deflate"

  private let coding: String
  private let isContent: TransferRequest.ContentTest
  private var form = Form.undecided
  /// The first bytes, until they determine the form.
  private var prefix: [UInt8] = []
  /// Number of bytes that were already read and will be offered again.
  private var readBefore = 0
  /// Must not move: zlib's state points to it. Nil until there is something to decompress.
  private var stream: UnsafeMutablePointer<z_stream>?
  private lazy var output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
  private var isGzip = false
  private var isAtEnd = false
  /// Whether a gzip member has ended before the current one.
  private var hasMember = false

  /// - Parameters:
  ///   - coding: the value of Content-Encoding, in lower case.
  ///   - isContent: whether the first bytes are uncoded content.
  init(_ coding: String, isContent: @escaping TransferRequest.ContentTest) {
    self.coding = coding
    self.isContent = isContent
  }

  deinit {
    guard let stream else { return }
    inflateEnd(stream)
    stream.deallocate()
    output.deallocate()
  }

  /// Whether the content ends with the bytes so far. An empty body is complete.
  var isComplete: Bool {
    switch form {
    case .undecided: prefix.isEmpty
    case .plain, .ended: true
    case .unknown: false
    // Zlib looks at a header once it has four bytes of it: fewer after a member are padding.
    case .compressed: isAtEnd || hasMember && stream?.pointee.total_in ?? 0 < 4
    }
  }

  /// - Parameter receive: gets the decoded bytes, up to 64 kB at a time. A few bytes may still follow `later`.
  func decode(_ offered: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Demand) -> Outcome {
    let alreadyRead = min(readBefore, offered.count)
    readBefore -= alreadyRead
    let bytes = UnsafeRawBufferPointer(rebasing: offered[alreadyRead...])
    if form == .undecided {
      let start = prefix + bytes.prefix(TransferRequest.maxContentTestBytes)
      guard let decision = decide(by: start) else {
        prefix = start
        return .done
      }
      form = decision
      // These few bytes will not be offered again, so a pause must wait until they are delivered.
      let outcome = prefix.withUnsafeBytes { pass($0) { receive($0) == .none ? .none : .more } }
      guard case .done = outcome else { return outcome }
    }
    let outcome = pass(bytes, to: receive)
    if case .paused = outcome, let stream { readBefore = offered.count - Int(stream.pointee.avail_in) }
    return outcome
  }

  /// The form of a body that begins with `start`; nil if more bytes are needed.
  private func decide(by start: [UInt8]) -> Form? {
    guard start.count > 1 else { return nil }
    if start[0] == 0x1f, start[1] == 0x8b { return begin(windowBits: 15 + 16) }
    let isKnown = ["gzip", "x-gzip", "deflate"].contains(coding)
    // RFC 1950 section 2.2.
    let isZlib = start[0] & 0x0f == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
    if isKnown, isZlib { return begin(windowBits: 15) }
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
      // Z_BUF_ERROR is not an error here: the output was full, and nothing was left to write.
      guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
        return hasMember && stream.pointee.total_out == 0 ? end() : .malformed
      }
      isAtEnd = code == Z_STREAM_END
      let count = output.count - Int(stream.pointee.avail_out)
      guard count > 0 else { continue }
      switch receive(UnsafeRawBufferPointer(rebasing: output[..<count])) {
      case .more: break
      case .later:
        // Zlib holds back at most one match (258 bytes) of the bytes that it has read. It is delivered in the same way.
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

internal import CZlib

/// Undoes a content coding (RFC 9110 section 8.4.1), piece by piece: gzip (RFC 1952), of one member or more, or
/// deflate, which is zlib's format (RFC 1950) and from some servers what is in it (RFC 1951).
///
/// Curl could do that, but takes a stream that breaks off for a whole one (until 8.11).
final class ContentDecoder {
  /// What a receiver says to what it was given.
  enum Appetite {
    case more
    /// More, but not now.
    case later
    case none
  }

  enum Outcome {
    case done
    /// The receiver wants the rest later: this is the first byte that has not been read.
    case paused(at: Int)
    /// The receiver wants no more.
    case stopped
    /// The bytes are no such stream, or follow the end of one.
    case malformed
  }

  /// What requests say is understood.
  static let accepted = "gzip, deflate"

  private let isGzip: Bool
  /// It must not move: zlib's state knows where it is.
  private let stream: UnsafeMutablePointer<z_stream>
  private let output: UnsafeMutableRawBufferPointer
  private var isReady = false
  private var isAtEnd = false
  /// The first byte of a deflate stream that has come alone: the second tells what it is.
  private var first: UInt8?

  /// - Parameter coding: as in Content-Encoding, in lower case; nil for one that is not `accepted`.
  init?(_ coding: String) {
    guard ["gzip", "x-gzip", "deflate"].contains(coding) else { return nil }
    isGzip = coding != "deflate"
    // Behind the guard: an initialiser that fails has no `deinit`.
    stream = .allocate(capacity: 1)
    output = .allocate(byteCount: 64 << 10, alignment: 1)
    stream.initialize(to: z_stream())
  }

  deinit {
    if isReady { inflateEnd(stream) }
    stream.deallocate()
    output.deallocate()
  }

  /// Whether the content has ended where the bytes so far end; a body of no bytes is content of none.
  var isComplete: Bool { isAtEnd || !isReady && first == nil }

  /// - Parameter receive: gets what the bytes stand for, up to 64 kB at a time. A few bytes may come after `later`.
  func decode(_ bytes: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Appetite) -> Outcome {
    guard !bytes.isEmpty else { return .done }
    guard !isReady else { return inflate(bytes, to: receive) }
    if isGzip { return begin(windowBits: 15 + 16) ? inflate(bytes, to: receive) : .malformed }
    let start = (first.map { [$0] } ?? []) + bytes.prefix(2)
    guard start.count > 1 else {
      first = start[0]
      return .done
    }
    // RFC 1950 section 2.2.
    let isWrapped = start[0] & 0x0f == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
    guard begin(windowBits: isWrapped ? 15 : -15) else { return .malformed }
    if let first {
      let outcome = withUnsafeBytes(of: first) { inflate($0, to: receive) }
      guard case .done = outcome else { return outcome }
    }
    return inflate(bytes, to: receive)
  }

  /// False when memory is short.
  private func begin(windowBits: Int32) -> Bool {
    isReady = inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    return isReady
  }

  private func inflate(_ bytes: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> Appetite) -> Outcome {
    stream.pointee.next_in = bytes.bindMemory(to: UInt8.self).baseAddress
    stream.pointee.avail_in = UInt32(bytes.count)
    repeat {
      if isAtEnd {
        guard isGzip, inflateReset(stream) == Z_OK else { return .malformed }
        isAtEnd = false
      }
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      let code = CZlib.inflate(stream, Z_NO_FLUSH)
      // Nothing to do is no error (Z_BUF_ERROR): the output was full, and all that was to come had.
      guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else { return .malformed }
      isAtEnd = code == Z_STREAM_END
      let count = output.count - Int(stream.pointee.avail_out)
      guard count > 0 else { continue }
      switch receive(UnsafeRawBufferPointer(rebasing: output[..<count])) {
      case .more: break
      case .later:
        // What zlib holds back of bytes that it has read is one match at most (258 bytes); it goes the same way.
        let left = Int(stream.pointee.avail_in)
        if left > 0 { return .paused(at: bytes.count - left) }
      case .none: return .stopped
      }
    } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0 && !isAtEnd
    return .done
  }
}

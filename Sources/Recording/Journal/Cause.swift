public import HTTPTransport
internal import HTTPTypes
public import ImageCodec
public import LineRPC
public import Platform

/// Something that a session handles and has not decided itself. A replay repeats the causes in their order.
public enum Cause: Sendable {
  /// The creation of the session.
  case start
  /// Lines of the host.
  case input([InputLine])
  case endOfInput(failed: Bool)
  /// A termination signal, or closed output.
  case termination
  /// A result of another thread, by the number of its `WorkSource`.
  case work(UInt64)
  /// The figures of the session are collected for another part of the worker.
  case figures
  /// The start of work that may start, after a batch of other causes.
  case advance
  /// The target of a redirect, as a URL.
  case redirect(transfer: UInt64, String)
  /// The head of a transfer's response.
  case response(transfer: UInt64, ResponseHead)
  /// A part of the body; without its bytes when it was read from a journal.
  case body(transfer: UInt64, count: Int, [UInt8])
  /// The end of a transfer. `body` is the SHA-256 of all its parts, if there were any, when it was read from a journal.
  case end(transfer: UInt64, Result<TransferSummary, TransferError>, body: String?)
  /// The end of a name lookup.
  case name(lookUp: UInt64, NameResolution)
  /// The end of a decode, and when a decoder got the task. A failure is repeated if it may depend on the machine;
  /// otherwise the replay decodes.
  case decoded(decode: UInt64, failure: DecodeError?, start: Instant?)

  /// The number of bytes that the cause holds in memory, approximately.
  var byteCount: Int {
    switch self {
    case .input(let lines): lines.reduce(256) { $0 + $1.byteCount }
    case .body(_, _, let bytes): 256 + bytes.count
    case .response(_, let head): 256 + head.headers.byteCount
    default: 256
    }
  }
}

/// A line of the host.
public enum InputLine: Sendable, Equatable {
  /// A JSON text of so many bytes, and the files that it names.
  case json(JSON, byteCount: Int, [HostPath])
  /// A line that is not JSON, by the message of its error. The line itself is not recorded.
  case invalid(String)
  /// A line that is longer than the limit in bytes.
  case tooLong(limit: Int)

  var byteCount: Int { if case .json(_, let count, _) = self { count } else { 64 } }
}

/// The file at a path of a request when the request arrived.
public struct HostPath: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable {
    case missing, file, folder, other
  }

  public var path: String
  public var kind: Kind
  /// Whether the folder exists that contains the path.
  public var hasParent: Bool
  /// The size of a file.
  public var byteCount: Int64 = 0
  /// The SHA-256 of a file that the request stores; nil if the file was not recorded.
  public var digest: String?
}

/// Something that a session has done for a cause.
public enum Effect: Sendable {
  /// A line for the host, with its LF.
  case sent([UInt8])
  /// The start of a transfer.
  case transfer(UInt64, TransferRequest)
  /// The start of a name lookup for an origin.
  case lookUp(UInt64, origin: String)
  /// The values that the session has read from other threads (`WorkSequencer.observed`).
  case observed([Bool])
  /// The end of the session with this exit status.
  case exit(Int32)

  var byteCount: Int { if case .sent(let line) = self { 64 + line.count } else { 256 } }
}

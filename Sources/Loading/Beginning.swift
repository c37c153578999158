internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// What an attempt that broke off has left for the next one: the first bytes of a body, and what they are the
/// beginning of.
///
/// Whoever holds it last hands its body on or discards it. An object, because a job that waits has none.
final class Beginning: Sendable {
  let response: PartialResponse
  /// Bytes or a spool.
  let body: Download.Body
  let byteCount: Int64
  /// Told by the first bytes; nil while they do not tell.
  let format: ImageFormat?

  init(response: PartialResponse, body: Download.Body, byteCount: Int64, format: ImageFormat?) {
    self.response = response
    self.body = body
    self.byteCount = byteCount
    self.format = format
  }
}

extension TransferRequest {
  /// Has the request ask for what is missing, and only where the beginning came from.
  mutating func askForRest(after beginning: Beginning) {
    for field in beginning.response.requestFields(from: beginning.byteCount).lines {
      headers.append(field.name, field.value)
    }
    validatedURL = beginning.response.url
    bytesKept = beginning.byteCount
  }
}

extension TransferError {
  /// Whether what came before can be trusted and the rest may still be had.
  var leavesBeginning: Bool { [.truncated, .timeout, .network, .cancelled].contains(kind) }
}

/// How much is kept for attempts to come: with many transfers broken off at once, some have to start over.
struct KeptBeginnings {
  static let mostBytesInMemory = 16 << 20
  /// Each holds a descriptor.
  static let mostSpools = 64

  private var bytesInMemory = 0
  private var spools = 0

  /// False when there is no room; else `remove` is due once it is used or discarded.
  mutating func insert(_ beginning: Beginning) -> Bool {
    let bytes = Self.bytesInMemory(of: beginning)
    let spool = bytes == 0 ? 1 : 0
    guard bytesInMemory + bytes <= Self.mostBytesInMemory, spools + spool <= Self.mostSpools else { return false }
    bytesInMemory += bytes
    spools += spool
    return true
  }

  mutating func remove(_ beginning: Beginning) {
    let bytes = Self.bytesInMemory(of: beginning)
    bytesInMemory -= bytes
    if bytes == 0 { spools -= 1 }
  }

  private static func bytesInMemory(of beginning: Beginning) -> Int {
    if case .bytes(let bytes) = beginning.body { bytes.count } else { 0 }
  }
}

extension StoredPartial {
  init(_ response: PartialResponse, identity: Identity, url: String) {
    self.init(
      identity: identity, url: url, finalURL: response.url, validator: response.validator, headers: response.headers,
      completeLength: response.completeLength)
  }
}

extension PartialResponse {
  init(_ stored: StoredPartial) {
    self.init(
      url: stored.finalURL, headers: stored.headers, validator: stored.validator, completeLength: stored.completeLength)
  }
}

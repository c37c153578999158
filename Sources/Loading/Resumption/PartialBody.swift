internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// What an attempt that broke off has left for the next one: the first bytes of a body, and what they are the
/// beginning of.
///
/// Whoever holds it last hands its body on or discards it. An object, because a job that waits has none.
final class PartialBody: Sendable {
  let response: PartialResponse
  /// Bytes or a spool.
  let body: Download.Body
  let byteCount: Int64
  /// Told by the first bytes; nil while they do not tell.
  let format: ImageFormat?
  /// The scans in it that are complete; nil where there is nothing to be counted.
  let scans: ScanCounter?

  init(
    response: PartialResponse, body: Download.Body, byteCount: Int64, format: ImageFormat?, scans: ScanCounter? = nil
  ) {
    self.response = response
    self.body = body
    self.byteCount = byteCount
    self.format = format
    self.scans = scans
  }
}

extension TransferRequest {
  /// Has the request ask for what is missing, and only where the beginning came from.
  mutating func askForRest(after partialBody: PartialBody) {
    for field in partialBody.response.requestFields(from: partialBody.byteCount).lines {
      headers.append(field.name, field.value)
    }
    validatedURL = partialBody.response.url
    bytesKept = partialBody.byteCount
  }
}

extension TransferError {
  /// Whether what came before can be trusted and the rest may still be had.
  var leavesBeginning: Bool { [.truncated, .timeout, .network, .cancelled].contains(kind) }
}

/// How much is kept for attempts to come: with many transfers broken off at once, some have to start over.
///
/// What is kept cannot be evicted, so of the disk cache's limit it takes a part only. A single body may be larger.
struct PartialBodyBudget {
  static let mostBytesInMemory: Int64 = 16 << 20
  static let mostBytesInScratch: Int64 = 256 << 20
  /// Each holds a descriptor.
  static let mostSpools = 64

  private var mostBytesInCache: Int64
  private var kept = KeptPartials()

  fileprivate struct KeptPartials {
    var bytesInMemory: Int64 = 0
    var bytesInCache: Int64 = 0
    var bytesInScratch: Int64 = 0
    var spools = 0
  }

  init(diskLimit: Int64) { mostBytesInCache = diskLimit / 8 }

  /// Bytes that the disk cache may hold. What is kept already stays.
  mutating func setDiskLimit(_ limit: Int64) { mostBytesInCache = limit / 8 }

  /// False when there is no room; else `remove` is due once it is used or discarded.
  mutating func insert(_ partialBody: PartialBody) -> Bool {
    var next = kept
    next.add(partialBody, times: 1)
    guard next.bytesInMemory <= Self.mostBytesInMemory, next.spools <= Self.mostSpools else { return false }
    let fits =
      next.bytesInCache <= max(mostBytesInCache, kept.bytesInCache)
      && next.bytesInScratch <= max(Self.mostBytesInScratch, kept.bytesInScratch)
    guard fits || kept.spools == 0 else { return false }
    kept = next
    return true
  }

  mutating func remove(_ partialBody: PartialBody) { kept.add(partialBody, times: -1) }
}

extension PartialBodyBudget.KeptPartials {
  fileprivate mutating func add(_ partialBody: PartialBody, times: Int) {
    let bytes = partialBody.byteCount * Int64(times)
    switch partialBody.body {
    case .bytes: bytesInMemory += bytes
    case .spool(let spooled):
      spools += times
      if spooled.isScratch { bytesInScratch += bytes } else { bytesInCache += bytes }
    case .failed: break
    }
  }
}

extension PartialRecord {
  init(_ response: PartialResponse, identity: Identity, url: String) {
    self.init(
      identity: identity, url: url, finalURL: response.url, validator: response.validator, headers: response.headers,
      completeLength: response.completeLength)
  }
}

extension PartialResponse {
  init(_ stored: PartialRecord) {
    self.init(
      url: stored.finalURL, headers: stored.headers, validator: stored.validator, completeLength: stored.completeLength)
  }
}

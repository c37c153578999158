internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// A resumable partial body: the first bytes of a body whose transfer was interrupted, and the response that they
/// belong to.
///
/// The last owner passes its body on or discards it. A class, since most waiting jobs have none.
final class PartialBody: Sendable {
  let response: PartialResponse
  /// Bytes or a spool.
  let body: Download.Body
  let byteCount: Int64
  /// The format recognised from the first bytes; nil if they do not suffice.
  let format: ImageFormat?
  /// The counter of its complete scans; nil if there are none to count.
  let scans: ScanCounter?
  /// The header of the image, if these bytes suffice and somebody has asked for it.
  let header: ImageHeader?

  init(
    response: PartialResponse, body: Download.Body, byteCount: Int64, format: ImageFormat?, scans: ScanCounter? = nil,
    header: ImageHeader? = nil
  ) {
    (self.response, self.body, self.byteCount) = (response, body, byteCount)
    (self.format, self.scans, self.header) = (format, scans, header)
  }
}

extension TransferRequest {
  /// Makes the request ask for the missing range, and only of the URL that the partial body came from.
  mutating func askForRest(after partialBody: PartialBody) {
    for field in partialBody.response.requestFields(from: partialBody.byteCount).lines {
      headers.append(field.name, field.value)
    }
    validatedURL = partialBody.response.url
    bytesKept = partialBody.byteCount
  }
}

extension TransferError {
  /// Whether the received bytes can be trusted and the rest may still be obtained.
  var leavesPartialBody: Bool { [.truncated, .timeout, .network, .cancelled].contains(kind) }
}

/// The budget for partial bodies kept for later attempts. If many transfers are interrupted at once, some must start
/// from the beginning.
///
/// Partial bodies cannot be evicted, so they may take only a part of the disk cache's limit. A single body may be
/// larger.
struct PartialBodyBudget {
  static let maxBytesInMemory: Int64 = 16 << 20
  static let maxBytesInScratch: Int64 = 256 << 20
  /// The maximum number of spools; each holds a file descriptor.
  static let maxSpools = 64

  private var maxBytesInCache: Int64
  private var kept = KeptPartials()

  private struct KeptPartials {
    var bytesInMemory: Int64 = 0
    var bytesInCache: Int64 = 0
    var bytesInScratch: Int64 = 0
    var spools = 0

    mutating func add(_ partialBody: PartialBody, times: Int) {
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

  init(diskLimit: Int64) { maxBytesInCache = diskLimit / 8 }

  /// Sets the limit of the disk cache in bytes. Partial bodies that are already kept stay.
  mutating func setDiskLimit(_ limit: Int64) { maxBytesInCache = limit / 8 }

  /// Returns false if the budget is exceeded; otherwise `remove` must follow when the body is used or discarded.
  mutating func insert(_ partialBody: PartialBody) -> Bool {
    var next = kept
    next.add(partialBody, times: 1)
    guard next.bytesInMemory <= Self.maxBytesInMemory, next.spools <= Self.maxSpools else { return false }
    let fits =
      next.bytesInCache <= max(maxBytesInCache, kept.bytesInCache)
      && next.bytesInScratch <= max(Self.maxBytesInScratch, kept.bytesInScratch)
    guard fits || kept.spools == 0 else { return false }
    kept = next
    return true
  }

  mutating func remove(_ partialBody: PartialBody) { kept.add(partialBody, times: -1) }
}

extension LoadRequest {
  /// The identity of the partial bodies that the load may resume: same key, credentials and request headers.
  func partialIdentity(in partition: String) -> PartialRecord.Identity {
    let lines = headers.lines.sorted { ($0.name, $0.value) < ($1.name, $1.value) }.map { "\($0.name):\($0.value)\n" }
    return PartialRecord.Identity(
      key: key, partition: partition, request: SHA256.digest(of: Array(lines.joined().utf8)))
  }
}

public import HTTPTypes

/// The first bytes of a representation, which a client asks for if it may not need the rest (RFC 9110 sections 14.2 and
/// 15.3.7).
public struct FirstRange: Sendable, Hashable {
  /// The number of bytes that are asked for.
  public let byteCount: Int64

  public init(byteCount: Int64) { self.byteCount = byteCount }

  public var requestFields: HeaderFields { ["range": "bytes=0-\(byteCount - 1)"] }

  /// The meaning of an answer to `requestFields`.
  public enum Answer: Sendable, Hashable {
    /// The first `count` bytes. The other values are the fields and the length of the whole response.
    case start(count: Int64, HeaderFields, completeLength: Int64)
    /// A whole response: the server ignores the range. Or a status that says nothing about the content.
    case other
    /// The range cannot be used: the whole must be requested.
    case mismatch
  }

  /// - Parameter contentLength: bytes of the answer's body, if it tells.
  public func answer(status: Int, headers: HeaderFields, contentLength: Int64?) -> Answer {
    if status == 416 { return .mismatch }
    guard status == 206 else { return .other }
    let ranges = headers.values(of: "content-range")
    guard ranges.count == 1, let range = ContentRange(ranges[0]), range.first == 0, let length = range.completeLength,
      range.count == min(length, byteCount), contentLength == nil || contentLength == range.count,
      !PartialResponse.isCoded(headers), !PartialResponse.isMultipart(headers)
    else { return .mismatch }
    var whole = headers
    whole.remove("content-range")
    whole.remove("content-length")
    whole.append("content-length", String(length))
    return .start(count: range.count, whole, completeLength: length)
  }
}

public import HTTPTypes
internal import Text

/// A partially received response: builds the request for the rest, and decides whether an answer is that rest (RFC 9110
/// sections 13.1.5, 14 and 15.3.7, RFC 9111 section 3.4).
///
/// Two representations must never be mixed: an answer that is not proven to belong to the stored part is rejected.
public struct PartialResponse: Sendable, Hashable {
  /// The URL of the response after redirects. Only this URL is asked for the rest.
  public let url: String
  /// The fields of the whole response, as stored by `Storing.fields`.
  public private(set) var headers: HeaderFields
  /// The validator of the representation as the server sent it: a strong entity tag or a strong date.
  public let validator: String
  /// Bytes of the whole body; nil if the server did not tell.
  public private(set) var completeLength: Int64?

  /// Fails if a transfer that breaks off must start from the beginning: if the answer is not a plain 200, has no strong
  /// validator, has a content coding or too long a header, or its server serves no ranges; or if the host's own request
  /// has a range or conditions.
  ///
  /// - Parameter contentLength: bytes of the body, if the answer tells.
  public init?(
    status: Int, headers: HeaderFields, url: String, contentLength: Int64?, requestHeaders: HeaderFields,
    receivedAt: Int
  ) {
    let request = RequestDirectives(requestHeaders)
    guard status == 200, !request.hasRange, !request.isConditional, !Self.isCoded(headers),
      headers["content-range"] == nil, Storing.mayKeep(headers),
      !headers.values(of: "accept-ranges").flatMap(Vary.members).contains("none"),
      let validator = Validation.strongValidator(of: headers, receivedAt: receivedAt), Self.canBeSent(validator)
    else { return nil }
    self.init(
      url: url, headers: Storing.fields(of: headers, receivedAt: receivedAt), validator: validator,
      completeLength: contentLength)
  }

  /// Restores a stored partial response.
  public init(url: String, headers: HeaderFields, validator: String, completeLength: Int64?) {
    self.url = url
    self.headers = headers
    self.validator = validator
    self.completeLength = completeLength
  }

  /// Whether there may be bytes after the first `count`.
  public func hasRest(after count: Int64) -> Bool { count > 0 && count < completeLength ?? .max }

  /// The fields that request everything from byte `offset`, or the whole if the representation has changed.
  public func requestFields(from offset: Int64) -> HeaderFields {
    ["range": "bytes=\(offset)-", "if-range": validator]
  }

  /// The meaning of an answer to `requestFields`.
  public enum Answer: Sendable, Hashable {
    /// The rest of the body. The associated value has the fields of the whole response, and its length, which is known
    /// now.
    case rest(PartialResponse)
    /// A whole response; the stored part is obsolete.
    case whole
    /// Neither: the whole must be requested.
    case rangeMismatch
  }

  /// - Parameters:
  ///   - url: the URL of the answer.
  ///   - contentLength: bytes of the answer's body, if it tells.
  ///   - offset: the offset from which the rest was requested.
  public func answer(
    status: Int, headers answerHeaders: HeaderFields, from url: String, contentLength: Int64?, offset: Int64,
    receivedAt: Int
  ) -> Answer {
    switch status {
    case 206: break
    case 200..<300: return .whole
    // Also an error: it may be about the range alone.
    default: return .rangeMismatch
    }
    let ranges = answerHeaders.values(of: "content-range")
    guard url == self.url, ranges.count == 1, let range = ContentRange(ranges[0]), range.first == offset,
      let length = agreedLength(range.completeLength), range.last == length - 1,
      contentLength == nil || contentLength == range.count,
      !Self.isCoded(answerHeaders), !Self.isMultipart(answerHeaders), hasSameValidators(answerHeaders)
    else { return .rangeMismatch }
    var whole = self
    whole.headers = Storing.fields(headers, updatedBy: answerHeaders, receivedAt: receivedAt)
    whole.completeLength = length
    return .rest(whole)
  }

  /// nil if the two lengths differ or neither is known, since completeness could not be checked then.
  private func agreedLength(_ rangeLength: Int64?) -> Int64? {
    guard let rangeLength, let completeLength else { return rangeLength ?? completeLength }
    return rangeLength == completeLength ? rangeLength : nil
  }

  /// Whether a part has the validators of the whole. Its entity tag must be that of the whole (RFC 9110 section
  /// 15.3.7): a part without one comes from a server that ignores If-Range or has no entity tags. It may omit
  /// Last-Modified, but must not change it.
  private func hasSameValidators(_ answer: HeaderFields) -> Bool {
    ["etag", "last-modified"].allSatisfy { name in
      let received = Set(answer.values(of: name).filter { !$0.isEmpty }.map { ExactString($0) })
      let stored = Set(headers.values(of: name).filter { !$0.isEmpty }.map { ExactString($0) })
      return received == stored || received.isEmpty && (name != "etag" || !stored.contains(ExactString(validator)))
    }
  }

  static func isCoded(_ headers: HeaderFields) -> Bool {
    headers.values(of: "content-encoding").flatMap(Vary.members).contains { $0 != "identity" }
  }

  /// Whether the validator is a single entity tag by the grammar (RFC 9110 section 8.8.3), or a date.
  private static func canBeSent(_ validator: String) -> Bool {
    guard validator.utf8.first == UInt8(ascii: "\"") else {
      return validator.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
    let tag = validator.utf8.dropFirst()
    return tag.last == UInt8(ascii: "\"")
      && tag.dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7f }
  }

  static func isMultipart(_ headers: HeaderFields) -> Bool {
    headers["content-type"]?.lowercased().hasPrefix("multipart/") ?? false
  }
}

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
    /// A whole response: the server ignores the range.
    case whole
    /// Neither: the whole must be requested.
    case mismatch
  }

  /// - Parameter contentLength: bytes of the answer's body, if it tells.
  public func answer(status: Int, headers: HeaderFields, contentLength: Int64?) -> Answer {
    guard status == 206 else { return (200..<300).contains(status) ? .whole : .mismatch }
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

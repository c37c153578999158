public import HTTPTypes
internal import Text

/// A response of which only the beginning came: how to ask for the rest, and whether an answer is that rest
/// (RFC 9110 sections 13.1.5, 14 and 15.3.7, RFC 9111 section 3.4).
///
/// Two representations must never be mixed: what does not prove to belong to the beginning does not.
public struct PartialResponse: Sendable, Hashable {
  /// Where it came from, redirects followed. Only this URL is asked for the rest.
  public let url: String
  /// The fields of the whole response, as `Storing.fields` keeps them.
  public private(set) var headers: HeaderFields
  /// What the representation is known by, as the server sent it: a strong entity tag or a strong date.
  public let validator: String
  /// Bytes of the whole body; nil when the server did not tell.
  public private(set) var completeLength: Int64?

  /// Nil where a transfer that breaks off has to start over: the answer is no plain 200, is known by nothing strong, is
  /// content-coded, has too long a header, or its server serves no ranges; or the host's own request asks for a range
  /// or sets conditions.
  ///
  /// - Parameter contentLength: bytes of the body, where the answer tells.
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

  /// One that was kept, made again from its parts.
  public init(url: String, headers: HeaderFields, validator: String, completeLength: Int64?) {
    self.url = url
    self.headers = headers
    self.validator = validator
    self.completeLength = completeLength
  }

  /// Whether there is something to ask for behind the first `count` bytes.
  public func hasRest(after count: Int64) -> Bool { count > 0 && count < completeLength ?? .max }

  /// The fields that ask for everything from byte `offset`, and for the whole if that is another one by now.
  public func requestFields(from offset: Int64) -> HeaderFields {
    ["range": "bytes=\(offset)-", "if-range": validator]
  }

  /// What an answer to `requestFields` is.
  public enum Answer: Sendable, Hashable {
    /// The rest. The whole has the fields and the length, now known, of this one.
    case rest(PartialResponse)
    /// A whole of its own; the beginning is worth nothing any more.
    case whole
    /// Neither: the whole has to be asked for.
    case rangeMismatch
    /// It does not speak of the content, as an error of the server: the rest may be asked for again.
    case none
  }

  /// - Parameters:
  ///   - url: where the answer came from.
  ///   - contentLength: bytes of its body, where it tells.
  ///   - offset: from where the rest was asked for.
  public func answer(
    status: Int, headers answered: HeaderFields, from url: String, contentLength: Int64?, offset: Int64,
    receivedAt: Int
  ) -> Answer {
    switch status {
    case 206: break
    case 200..<300: return .whole
    // 412 is no answer to If-Range; a server that thinks so would do so again.
    case 412, 416: return .rangeMismatch
    default: return .none
    }
    let ranges = answered.values(of: "content-range")
    guard url == self.url, ranges.count == 1, let range = ContentRange(ranges[0]), range.first == offset,
      let length = agreedLength(range.completeLength), range.last == length - 1,
      contentLength == nil || contentLength == range.count,
      !Self.isCoded(answered), !Self.isMultipart(answered), hasSameValidators(answered)
    else { return .rangeMismatch }
    var whole = self
    whole.headers = Storing.fields(headers, updatedBy: answered, receivedAt: receivedAt)
    whole.completeLength = length
    return .rest(whole)
  }

  /// Nil when the two differ or neither is known: then nobody could tell whether the whole is complete.
  private func agreedLength(_ told: Int64?) -> Int64? {
    guard let told, let completeLength else { return told ?? completeLength }
    return told == completeLength ? told : nil
  }

  /// A part has the entity tag of the whole (RFC 9110 section 15.3.7): one without does not heed If-Range, or comes
  /// from a server that knows none. A date it need not repeat, but what it says must be what was said.
  private func hasSameValidators(_ answered: HeaderFields) -> Bool {
    ["etag", "last-modified"].allSatisfy { name in
      let told = Set(answered.values(of: name).filter { !$0.isEmpty }.map { ExactString($0) })
      let known = Set(headers.values(of: name).filter { !$0.isEmpty }.map { ExactString($0) })
      return told == known || told.isEmpty && (name != "etag" || !known.contains(ExactString(validator)))
    }
  }

  private static func isCoded(_ headers: HeaderFields) -> Bool {
    headers.values(of: "content-encoding").flatMap(Vary.members).contains { $0 != "identity" }
  }

  /// Whether it is a single entity tag by the grammar (RFC 9110 section 8.8.3), or a date.
  private static func canBeSent(_ validator: String) -> Bool {
    guard validator.utf8.first == UInt8(ascii: "\"") else {
      return validator.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
    let tag = validator.utf8.dropFirst()
    return tag.last == UInt8(ascii: "\"")
      && tag.dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7f }
  }

  private static func isMultipart(_ headers: HeaderFields) -> Bool {
    headers["content-type"]?.lowercased().hasPrefix("multipart/") ?? false
  }
}

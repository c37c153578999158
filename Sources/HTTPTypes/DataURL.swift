internal import Text

/// A parsed `data:` URL, whose content is in the URL itself (RFC 2397, as interpreted by the Fetch standard).
public struct DataURL: Sendable, Hashable {
  public struct Invalid: Error, Hashable, CustomStringConvertible {
    /// Safe to show in an error message: it quotes nothing of the URL.
    public let description: String
  }

  /// As in the URL; `text/plain;charset=US-ASCII` if the URL names none.
  public let mediaType: String
  public let body: [UInt8]

  /// Whether `text` begins with `data:` in any case, after blanks (WHATWG URL section 4.4).
  public static func isDataURL(_ text: String) -> Bool {
    text.utf8.drop { $0 <= 0x20 }.prefix(scheme.count).elementsEqual(scheme) { $0.asciiLowercased == $1 }
  }

  /// The part of a `data:` URL that may be shown: everything before its comma, at most 256 bytes.
  public static func echo(_ text: String) -> String {
    String(decoding: text.utf8.prefix(256).prefix { $0 != UInt8(ascii: ",") }, as: UTF8.self)
  }

  /// Takes time and memory in proportion to the URL's length.
  public init(_ text: String) throws(Invalid) {
    guard Self.isDataURL(text) else { throw Invalid(description: "it must begin with data:") }
    var text = text
    let result: Result<DataURL, Invalid> = text.withUTF8 { bytes in Self.parse(bytes) }
    self = try result.get()
  }

  private init(mediaType: String, body: [UInt8]) { (self.mediaType, self.body) = (mediaType, body) }

  private static let scheme = Array("data:".utf8)
  private static let base64Mark = Array("base64".utf8)
  /// Bytes to skip in base64 (WHATWG Infra, forgiving-base64 decode).
  private static let whiteSpace = Array("\t\n\u{C}\r ".utf8)

  private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Result<DataURL, Invalid> {
    let end = bytes.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? bytes.startIndex
    let trimmed = bytes[..<end].drop { $0 <= 0x20 }
    let url = trimmed[..<(trimmed.firstIndex(of: UInt8(ascii: "#")) ?? trimmed.endIndex)]
    guard let comma = url.firstIndex(of: UInt8(ascii: ",")) else {
      return .failure(Invalid(description: "it must have a comma before its content"))
    }
    var description = Array(url[(url.startIndex + scheme.count)..<comma]).trimmingBlanks
    let isBase64 = removeBase64Mark(from: &description)
    var body = PercentEncoding.decoded(url[(comma + 1)...])
    if isBase64 {
      body.removeAll { whiteSpace.contains($0) }
      guard let decoded = body.withUnsafeBytes(Base64.decode) else {
        return .failure(Invalid(description: "its content must be complete base64"))
      }
      body = decoded
    }
    return .success(DataURL(mediaType: mediaType(description), body: body))
  }

  /// Removes `; base64` from the end of `description`, and returns whether it was there.
  private static func removeBase64Mark(from description: inout ArraySlice<UInt8>) -> Bool {
    guard description.suffix(base64Mark.count).map(\.asciiLowercased) == base64Mark else { return false }
    var rest = description.dropLast(base64Mark.count)
    while rest.last == UInt8(ascii: " ") { rest.removeLast() }
    guard rest.popLast() == UInt8(ascii: ";") else { return false }
    description = rest
    return true
  }

  private static func mediaType(_ description: ArraySlice<UInt8>) -> String {
    let text = String(decoding: description, as: UTF8.self)
    if text.hasPrefix(";") { return "text/plain" + text }
    return text.utf8.contains(UInt8(ascii: "/")) ? text : "text/plain;charset=US-ASCII"
  }
}

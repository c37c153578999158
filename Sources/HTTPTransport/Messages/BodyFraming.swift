internal import HTTPTypes

/// The fields of a response's head that determine the length and the coding of its body, found in one pass.
struct BodyFraming {
  /// The values of the Content-Length fields.
  private var lengths: [String] = []
  /// Whether there is exactly one Content-Length, of digits only, as in most heads.
  private let hasPlainLength: Bool
  /// Whether the body is coded, so that its length is not that of the content.
  private let isCoded: Bool
  private var contentCodings: [String] = []
  private var transferCodings: [String] = []
  private var contentRange: String?

  init(_ lines: [HeaderField]) {
    for line in lines {
      if line.isNamed("content-length") {
        lengths.append(line.value)
      } else if line.isNamed("content-encoding") {
        contentCodings.append(line.value.lowercased())
      } else if line.isNamed("transfer-encoding") {
        transferCodings.append(line.value.lowercased())
      } else if line.isNamed("content-range"), contentRange == nil {
        contentRange = line.value
      }
    }
    hasPlainLength = lengths.count == 1 && Self.isNumber(lengths[0])
    isCoded = !(contentCodings + transferCodings).allSatisfy { $0 == "identity" }
  }

  /// The value of Content-Encoding in lower case; nil if there is none.
  var contentCoding: String? { contentCodings.isEmpty ? nil : contentCodings.joined(separator: ", ") }
  /// The value of Transfer-Encoding in lower case; nil if there is none.
  var transferCoding: String? { transferCodings.isEmpty ? nil : transferCodings.joined(separator: ", ") }

  /// Number of bytes of a body without content encoding; nil if the head does not tell. A number out of range becomes
  /// the largest one.
  var contentLength: Int64? {
    guard !isCoded, let length = lengths.last, hasPlainLength || Self.isNumber(length) else { return nil }
    return Int64(length) ?? .max
  }

  /// Whether the body of an HTTP/1 response ends with its connection (RFC 9112 section 6.3).
  var isEndedByClose: Bool { lengths.isEmpty && !transferCodings.contains("chunked") }

  private static func isNumber(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0.isASCIIDigit }
  }

  /// Whether the head names several different lengths, in one field or more, so that the end of the body is unknown
  /// (RFC 9112 section 6.3).
  var hasAmbiguousLength: Bool {
    guard !hasPlainLength, let first = lengths.first, transferCodings.isEmpty else { return false }
    let numbers = first.utf8.split { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }
    return lengths.contains { $0 != first } || numbers.dropFirst().contains { !$0.elementsEqual(numbers[0]) }
  }

  /// Whether a Content-Length is anything but decimal numbers (RFC 9110 section 8.6). Curl would read its valid prefix.
  var hasMalformedLength: Bool {
    guard !hasPlainLength, transferCodings.isEmpty else { return false }
    return lengths.contains { length in
      !length.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).allSatisfy { number in
        let digits = number.drop { $0 == 0x20 || $0 == 0x09 }
        return digits.first?.isASCIIDigit == true
          && digits.drop { $0.isASCIIDigit }.allSatisfy { $0 == 0x20 || $0 == 0x09 }
      }
    }
  }

  /// Whether the body of a 206 is only a part of the content, by Content-Range (RFC 9110 section 14.4).
  var isPartial: Bool {
    guard let contentRange else { return false }
    guard let range = ContentRange(contentRange) else { return true }
    return range.first != 0 || range.count != range.completeLength
  }
}

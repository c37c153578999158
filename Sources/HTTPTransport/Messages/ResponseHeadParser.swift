internal import HTTPTypes
internal import Text

/// Assembles the head of a response from the header lines that curl delivers one by one.
struct ResponseHeadParser {
  private(set) var status = 0
  /// Whether a status line had no status of three digits (RFC 9112 section 4).
  private(set) var isStatusMalformed = false
  private(set) var httpVersion = ""
  private var lines: [HeaderField] = []

  /// Consumes one line with its line ending.
  ///
  /// - Returns: true if the line ended the final head: any but an informational one (1xx), except that 101 is final
  ///   too. The head of an informational response is dropped when the next one starts.
  mutating func consume(_ line: UnsafeRawBufferPointer) -> Bool {
    let line = line.withoutLineEnd
    guard let first = line.first else { return status >= 200 || status == 101 }
    if first == UInt8(ascii: "H"), line.starts(with: "HTTP/".utf8) {
      start(line)
    } else if first == 0x20 || first == 0x09 {
      fold(line)
    } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
      if lines.isEmpty { lines.reserveCapacity(16) }
      lines.append(HeaderField(name: line[..<colon].withoutBlanks, value: line[(colon + 1)...].withoutBlanks))
    }
    return false
  }

  var headers: HeaderFields { HeaderFields(lines) }

  private mutating func start(_ line: UnsafeRawBufferPointer) {
    let version = line.dropFirst("HTTP/".utf8.count).prefix { $0 != 0x20 }
    httpVersion = String(decoding: version, as: UTF8.self)
    let digits = line[version.endIndex...].drop { $0 == 0x20 }.prefix { $0 != 0x20 }
    let isStatus = digits.count == 3 && digits.allSatisfy(\.isASCIIDigit) && digits.first != UInt8(ascii: "0")
    isStatusMalformed = !isStatus
    status = isStatus ? digits.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) } : 0
    lines.removeAll(keepingCapacity: true)
  }

  /// Obsolete line folding: the line continues the previous value (RFC 9112 section 5.2).
  private mutating func fold(_ line: UnsafeRawBufferPointer) {
    guard let last = lines.indices.last else { return }
    lines[last].value += " " + String(decoding: line.trimmingBlanks, as: UTF8.self)
  }
}

extension UnsafeRawBufferPointer {
  fileprivate var withoutLineEnd: UnsafeRawBufferPointer {
    var end = count
    while end > 0, self[end - 1] == 0x0d || self[end - 1] == 0x0a { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: self[..<end])
  }
}

extension Slice<UnsafeRawBufferPointer> {
  fileprivate var withoutBlanks: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: trimmingBlanks) }
}

internal import HTTPTypes
internal import Text

/// The `traceparent` field of W3C Trace Context (https://www.w3.org/TR/trace-context/, section 3.2), with which the
/// host connects a load to a trace of its own.
struct TraceParent: Equatable {
  /// 32 lower-case hexadecimal digits, not all of them zero.
  let traceID: String

  /// Nil if the value is malformed. The parts that versions after 00 may append are ignored, as section 4.3 requires.
  init?(_ value: String) {
    let bytes = Array(value.utf8)
    guard bytes.count >= Self.length else { return nil }
    let parts = bytes[..<Self.length].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.map(\.count) == Self.partLengths, parts.allSatisfy({ $0.allSatisfy(Self.isDigit) }) else { return nil }
    let version = parts[0]
    guard !version.elementsEqual("ff".utf8), !Self.isZero(parts[1]), !Self.isZero(parts[2]) else { return nil }
    if bytes.count > Self.length {
      guard !Self.isZero(version), bytes[Self.length] == UInt8(ascii: "-") else { return nil }
    }
    traceID = String(decoding: parts[1], as: UTF8.self)
  }

  /// The lengths of the version, the trace id, the parent id and the flags.
  private static let partLengths = [2, 32, 16, 2]
  private static let length = 55

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  private static func isZero(_ digits: ArraySlice<UInt8>) -> Bool { digits.allSatisfy { $0 == UInt8(ascii: "0") } }
}

/// The normalizations of RFC 3986 section 6 that never change the resource.
enum URLNormalization {
  /// Decodes unreserved characters, and writes the digits of all others in upper case (sections 6.2.2.1 and 6.2.2.2).
  static func percentEncoding(of bytes: ArraySlice<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      if byte == UInt8(ascii: "%"), let decoded = PercentEncoding.decodedByte(at: index, of: bytes) {
        // A decoded digit after a literal `%` would change its meaning.
        let completesEscape = decoded.hexadecimalValue != nil && output.suffix(2).contains(UInt8(ascii: "%"))
        if decoded.isUnreserved, !completesEscape {
          output.append(decoded)
        } else {
          output += PercentEncoding.encoded(decoded)
        }
        index += 3
      } else {
        output.append(byte)
        index += 1
      }
    }
    return output
  }

  /// Resolves an absolute path by section 5.2.4: removes `.` segments, and `..` together with the preceding segment.
  static func withoutDotSegments(_ path: [UInt8]) -> [UInt8] {
    guard path.first == UInt8(ascii: "/") else { return path }
    var output: [UInt8] = []
    output.reserveCapacity(path.count)
    var segments = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
    while let segment = segments.popFirst() {
      let isUp = segment.elementsEqual([UInt8(ascii: "."), UInt8(ascii: ".")])
      if isUp, let slash = output.lastIndex(of: UInt8(ascii: "/")) { output.removeSubrange(slash...) }
      if isUp || segment.elementsEqual([UInt8(ascii: ".")]) {
        // A path that ends in a dot segment ends in the slash before that segment.
        if segments.isEmpty { output.append(UInt8(ascii: "/")) }
      } else {
        output.append(UInt8(ascii: "/"))
        output += segment
      }
    }
    return output
  }
}

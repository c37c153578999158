extension BidirectionalCollection<UInt8> {
  /// The bytes without spaces and tabs at both ends: the optional white space of HTTP (RFC 9110 section 5.6.3).
  @inlinable public var trimmingBlanks: SubSequence {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    var (start, end) = (startIndex, endIndex)
    while start < end, isBlank(self[start]) { formIndex(after: &start) }
    while start < end, isBlank(self[index(before: end)]) { formIndex(before: &end) }
    return self[start..<end]
  }
}

extension UnsafeRawBufferPointer {
  public var isASCII: Bool {
    var union: UInt8 = 0
    for byte in self { union |= byte }
    return union < 0x80
  }
}

// The standard library has these searches in _StringProcessing, which adds 1.1 MB to each program.

extension Collection where Element: Equatable {
  /// The first place of a part that is not empty; nil if there is none.
  public func firstRange<Part: Collection<Element>>(ofPart part: Part) -> Range<Index>? {
    guard let first = part.first else { return nil }
    if Element.self == UInt8.self,
      let found = withContiguousStorageIfAvailable({ firstOffset(of: Array(part), in: UnsafeRawBufferPointer($0)) })
    {
      return found.map { offset in
        let start = index(startIndex, offsetBy: offset)
        return start..<index(start, offsetBy: part.count)
      }
    }
    var start = startIndex
    while let found = self[start...].firstIndex(of: first) {
      if self[found...].starts(with: part) { return found..<index(found, offsetBy: part.count) }
      start = index(after: found)
    }
    return nil
  }

  /// Whether a part that is not empty occurs.
  public func has(_ part: some Collection<Element>) -> Bool { firstRange(ofPart: part) != nil }
}

extension StringProtocol {
  /// Whether a text that is not empty occurs, byte for byte.
  public func has(_ text: some StringProtocol) -> Bool { utf8.has(text.utf8) }
}

/// A search of bytes that is much faster than the one by elements, which is generic code.
private func firstOffset<Element>(of part: [Element], in bytes: UnsafeRawBufferPointer) -> Int? {
  part.withUnsafeBytes { part in
    guard let start = bytes.baseAddress, let wanted = part.baseAddress, let first = part.first else { return nil }
    var offset = 0
    while bytes.count - offset >= part.count,
      let found = memchr(start + offset, Int32(first), bytes.count - offset - part.count + 1)
    {
      if memcmp(found, wanted, part.count) == 0 { return UnsafeRawPointer(found) - start }
      offset = UnsafeRawPointer(found) - start + 1
    }
    return nil
  }
}

// The standard library has these searches in _StringProcessing, which adds 1.1 MB to each program.

extension Collection where Element: Equatable {
  /// The first place of a part that is not empty; nil if there is none.
  public func firstRange<Part: Collection<Element>>(ofPart part: Part) -> Range<Index>? {
    guard let first = part.first else { return nil }
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

/// Scans over strings, eight bytes at a time.
///
/// A word is loaded only if all eight bytes are in the buffer; the rest is scanned byte by byte. `zeros` sets the top
/// bit of each zero byte of a word. It may also set bits above the first one, so only the first is valid.
extension UnsafeRawBufferPointer {
  /// The index of the first byte at or after `start` that ends the plain part of a JSON string: a quote, a backslash or
  /// a control character. The end of the buffer if there is none.
  func endOfPlainString(from start: Int) -> Int {
    firstMark(from: start) { word in
      zeros(word ^ every(0x22)) | zeros(word ^ every(0x5C)) | ((word &- every(0x20)) & ~word)
    }
  }

  /// Like `endOfPlainString`, but stops at every byte that is not printable ASCII.
  func endOfPrintableString(from start: Int) -> Int {
    firstMark(from: start) { word in
      zeros(word ^ every(0x22)) | zeros(word ^ every(0x5C)) | zeros(word ^ every(0x7F)) | (word &- every(0x20)) | word
    }
  }

  var isASCII: Bool {
    var index = 0
    while count - index >= 8 {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) & every(0x80) != 0 { return false }
      index += 8
    }
    while index < count {
      if self[index] & 0x80 != 0 { return false }
      index += 1
    }
    return true
  }

  @inline(__always)
  private func firstMark(from start: Int, _ marks: (UInt64) -> UInt64) -> Int {
    var index = start
    while count - index >= 8 {
      let word = UInt64(littleEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let marked = marks(word) & every(0x80)
      if marked != 0 { return index + marked.trailingZeroBitCount >> 3 }
      index += 8
    }
    while index < count {
      // The seven bytes above this one are set to a letter, which is never marked.
      if marks(UInt64(self[index]) | every(0x61) << 8) & 0x80 != 0 { return index }
      index += 1
    }
    return index
  }
}

@inline(__always)
private func every(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

@inline(__always)
private func zeros(_ word: UInt64) -> UInt64 { (word &- every(0x01)) & ~word }

/// Takes the codes of a GIF's picture apart (GIF89a appendix F).
struct LZWDecoder {
  private static let mostCodes = 4096
  /// So many indices are handed out at a time, and up to one string more.
  private static let atOnce = 1 << 14

  private let data: UnsafeBufferPointer<UInt8>
  private let clear: Int
  private let firstSize: Int

  /// - Parameter minimumSize: of a code in bits, 1 to 8, as the picture's first byte tells.
  init(_ data: UnsafeBufferPointer<UInt8>, minimumSize: Int) {
    self.data = data
    clear = 1 << minimumSize
    firstSize = minimumSize + 1
  }

  /// Ends with the data, with the code that ends them, with one that cannot be, or when `take` wants no more.
  ///
  /// - Parameter take: gets indices in their order.
  func decode(_ take: (UnsafeBufferPointer<UInt8>) -> Bool) {
    withUnsafeTemporaryAllocation(of: Entry.self, capacity: Self.mostCodes) { entries in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.atOnce + Self.mostCodes) { indices in
        let table = entries.baseAddress!
        for code in 0..<(clear + 2) {
          let index = UInt8(truncatingIfNeeded: code)
          table[code] = Entry(prefix: 0, length: 1, first: index, last: index)
        }
        decode(table, indices.baseAddress!, take)
      }
    }
  }

  /// A string: another one, and one more index.
  private struct Entry {
    var prefix: UInt16
    var length: UInt16
    var first: UInt8
    var last: UInt8
  }

  private func decode(
    _ table: UnsafeMutablePointer<Entry>, _ indices: UnsafeMutablePointer<UInt8>,
    _ take: (UnsafeBufferPointer<UInt8>) -> Bool
  ) {
    var (next, size, previous) = (clear + 2, firstSize, -1)
    var (bits, bitCount, position): (UInt64, Int, Int) = (0, 0, 0)
    var count = 0
    codes: while true {
      while bitCount < size {
        guard position < data.count else { break codes }
        bits |= UInt64(data[position]) << UInt64(bitCount)
        position += 1
        bitCount += 8
      }
      let code = Int(bits & (1 << UInt64(size) - 1))
      bits >>= UInt64(size)
      bitCount -= size
      if code == clear {
        (next, size, previous) = (clear + 2, firstSize, -1)
        continue
      }
      if code == clear + 1 { break }
      if previous < 0 {
        guard code < clear else { break }
      } else if next < Self.mostCodes {
        guard code <= next else { break }
        let known = table[previous]
        let last = code == next ? known.first : table[code].first
        table[next] = Entry(prefix: UInt16(previous), length: known.length + 1, first: known.first, last: last)
        next += 1
        if next == 1 << size, size < 12 { size += 1 }
      }
      // A full table has no string that is not known.
      let length = Int(table[code].length)
      var (string, place) = (code, count + length)
      while place > count {
        place -= 1
        indices[place] = table[string].last
        string = Int(table[string].prefix)
      }
      count += length
      previous = code
      if count >= Self.atOnce {
        guard take(UnsafeBufferPointer(start: indices, count: count)) else { return }
        count = 0
      }
    }
    _ = take(UnsafeBufferPointer(start: indices, count: count))
  }
}

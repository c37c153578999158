/// Decodes the LZW codes of a GIF frame (GIF89a appendix F).
struct LZWDecoder {
  private static let maxCodes = 4096
  /// The number of indices that are passed on at a time; one string more is possible.
  private static let atOnce = 1 << 14

  private let data: UnsafeBufferPointer<UInt8>
  private let clear: Int
  private let firstSize: Int

  /// - Parameter minimumSize: the minimum code size in bits, 1 to 8, from the first byte of the frame's data.
  init(_ data: UnsafeBufferPointer<UInt8>, minimumSize: Int) {
    self.data = data
    clear = 1 << minimumSize
    firstSize = minimumSize + 1
  }

  /// Decodes until the data ends, an end code or an invalid code comes, or `take` returns false.
  ///
  /// - Parameter take: receives the indices in order.
  func decode(_ take: (UnsafeBufferPointer<UInt8>) -> Bool) {
    withUnsafeTemporaryAllocation(of: Entry.self, capacity: Self.maxCodes) { entries in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.atOnce + Self.maxCodes) { indices in
        let table = entries.baseAddress!
        for code in 0..<(clear + 2) {
          let index = UInt8(truncatingIfNeeded: code)
          table[code] = Entry(prefix: 0, length: 1, first: index, last: index)
        }
        decode(table, indices.baseAddress!, take)
      }
    }
  }

  /// A string: the string `prefix` plus one index.
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
      } else if next < Self.maxCodes {
        guard code <= next else { break }
        let known = table[previous]
        let last = code == next ? known.first : table[code].first
        table[next] = Entry(prefix: UInt16(previous), length: known.length + 1, first: known.first, last: last)
        next += 1
        if next == 1 << size, size < 12 { size += 1 }
      }
      // A full table contains every string that a code can name.
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

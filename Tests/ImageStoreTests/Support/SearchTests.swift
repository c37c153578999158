import Platform
import Testing

struct SearchTests {
  @Test func `the fast search of bytes finds what that of other elements finds`() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in UInt8.random(in: 97...98, using: &random) }
      let part = (0..<Int.random(in: 0...4, using: &random)).map { _ in UInt8.random(in: 97...98, using: &random) }
      let expected = text.map(Int.init).firstRange(ofPart: part.map(Int.init))
      #expect(text.firstRange(ofPart: part) == expected)
      #expect(text.has(part) == (expected != nil))
      let slice = ([1, 2] + text + [3])[2..<2 + text.count]
      #expect(slice.firstRange(ofPart: part) == expected.map { $0.lowerBound + 2..<$0.upperBound + 2 })
      text.withUnsafeBytes { #expect($0.firstRange(ofPart: part) == expected) }
      let string = String(decoding: text, as: UTF8.self)
      let range = string.utf8.firstRange(ofPart: part)
      #expect(range.map { string.utf8.distance(from: string.startIndex, to: $0.lowerBound) } == expected?.lowerBound)
      #expect(range.map { string.utf8[$0].elementsEqual(part) } != false)
    }
  }
}

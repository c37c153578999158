import Testing
import Text

@Suite struct ExactStringTests {
  @Test func `texts that look the same differ`() {
    let (one, other): (ExactString, ExactString) = ("caf\u{E9}", "cafe\u{301}")
    #expect(one.text == other.text)
    #expect(one != other)
    #expect(one == ExactString("caf" + "\u{E9}"))
    #expect(Set([one, other, one]).count == 2)
  }

  @Test func `a sender cannot make hashes collide by reordering accents`() {
    // Canonical ordering makes these equal as `String`s: marks of two classes, in any order.
    let texts = (0..<64).map { number in
      ExactString("a" + (0..<6).map { number >> $0 & 1 == 0 ? "\u{316}\u{301}" : "\u{301}\u{316}" }.joined())
    }
    #expect(Set(texts.map(\.text)).count < 64)
    #expect(Set(texts.map(\.hashValue)).count == 64)
  }

  @Test func `the end of a text affects the hash`() {
    #expect([ExactString("ab"), "c"].hashValue != [ExactString("a"), "bc"].hashValue)
  }
}

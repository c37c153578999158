import Testing
import Text

@Suite struct HexadecimalTests {
  @Test(arguments: [
    (0, 2, "00"), (0xf, 2, "0f"), (0x1a2, 2, "a2"), (0x9abc_def0, 8, "9abcdef0"), (.max, 16, "ffffffffffffffff"),
  ])
  func `the lowest digits are written in lower case`(value: UInt64, digits: Int, text: String) {
    #expect(hexadecimal(value, digits: digits) == text)
  }
}

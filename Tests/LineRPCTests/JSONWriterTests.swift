import LineRPC
import Testing
import Text

struct JSONWriterTests {
  @Test func `commas are written between members and elements only`() {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("a", 1)
    writer.key("b")
    writer.beginArray()
    writer.value(true)
    writer.null()
    writer.beginObject()
    writer.endObject()
    writer.append(raw: Array("[7]".utf8))
    writer.beginArray()
    writer.endArray()
    writer.endArray()
    writer.member("c", constant: "d")
    writer.key(escaping: "é")
    writer.value("x")
    writer.member("f", false)
    writer.member("g", 0.25)
    writer.member("h", RequestID.string("i"))
    writer.member("j", .array([.integer(1), .object(["k": .null, "l": .bool(true)])]))
    writer.member("m", base64: Array("any".utf8))
    writer.endObject()
    #expect(
      String(decoding: writer.bytes, as: UTF8.self)
        == #"{"a":1,"b":[true,null,{},[7],[]],"c":"d","\u00e9":"x","f":false,"g":0.25,"h":"i","j":[1,{"k":null,"l":true}],"m":"YW55"}"#
    )
  }

  @Test(arguments: [
    ("plain", #""plain""#), ("", #""""#), ("\"\\/", #""\"\\/""#), ("\u{8}\u{C}\n\r\t", #""\b\f\n\r\t""#),
    ("\0\u{1F}\u{7F}", #""\u0000\u001f\u007f""#), ("é€\u{2028}", #""\u00e9\u20ac\u2028""#),
    ("😀\u{10FFFF}", #""\ud83d\ude00\udbff\udfff""#), ("seven..é.......", #""seven..\u00e9.......""#),
  ])
  func `everything but printable ASCII is escaped`(value: String, text: String) {
    #expect(JSON.string(value).text == text)
  }

  @Test(arguments: [
    (Int64.min, "-9223372036854775808"), (.max, "9223372036854775807"), (0, "0"), (-1, "-1"), (10, "10"),
  ])
  func `integers are written in full`(value: Int64, text: String) {
    #expect(JSON.integer(value).text == text)
  }

  @Test(arguments: [
    (1.0, "1.0"), (1e300, "1e+300"), (.leastNonzeroMagnitude, "5e-324"), (-0.0, "-0.0"), (.nan, "null"),
    (.infinity, "null"),
  ])
  func `a double reads back the same, and is null if it is not finite`(
    value: Double, text: String
  ) {
    #expect(JSON.number(value).text == text)
  }

  @Test func `written JSON reads back the same, and is printable ASCII`() throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<1000 {
      let value = JSON.random(depth: 4, using: &generator)
      let text = value.text
      let back = try JSON(text)
      #expect(back == value, "seed \(seed)")
      #expect(back.text == text, "seed \(seed)")
      #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "seed \(seed)")
    }
  }
}

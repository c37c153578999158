import Foundation
import Testing
import Text

struct Base64Tests {
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"),
  ])
  func `the examples of RFC 4648 hold`(data: String, text: String) {
    #expect(Base64.encode(Array(data.utf8)) == Array(text.utf8))
    #expect(Base64.decode(text) == Array(data.utf8))
    #expect(Base64.decode(String(text.prefix { $0 != "=" })) == Array(data.utf8))
  }

  @Test(arguments: [
    "Z", "Zg=", "Zm9vY", "Zg===", "=", "==", "===", "====", "Zg==Zg==", "Zm=v", "Zm9v=", "Z m9v", "Zm9v\n", "Zm9-",
    "Zm9_",
    "Zmé9", "Zm9\0", "A===", "Zm8=AAAA",
  ])
  func `a text that is not base64 is refused`(text: String) {
    #expect(Base64.decode(text) == nil)
  }

  @Test func `bits beyond the last byte are ignored`() {
    #expect(Base64.decode("Zh") == Array("f".utf8))
    #expect(Base64.decode("Zm9=") == Array("fo".utf8))
  }

  @Test(arguments: 0..<70)
  func `any bytes survive a round trip, and Foundation agrees`(count: Int) {
    let data = (0..<count).map { _ in UInt8.random(in: .min ... .max) }
    let text = Base64.encode(data)
    #expect(text == Array(Data(data).base64EncodedData()))
    #expect(text.withUnsafeBytes { Base64.decode($0) } == data)
  }
}

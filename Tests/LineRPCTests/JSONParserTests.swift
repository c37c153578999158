import Foundation
import LineRPC
import Testing
import Threads

struct JSONParserTests {
  @Test func `each kind of value is parsed as that kind`() throws {
    let text = #" { "a" : null , "b":[true,false,[],{}], "c":-12, "d":1.5, "e":"x" } "#
    let object: JSONObject = [
      "a": .null, "b": .array([.bool(true), .bool(false), .array([]), .object([:])]), "c": .integer(-12),
      "d": .number(1.5), "e": .string("x"),
    ]
    #expect(try JSON(text) == .object(object))
  }

  @Test(arguments: [
    ("0", JSON.integer(0)), ("-0", .integer(0)), ("9007199254740993", .integer(9_007_199_254_740_993)),
    ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
    ("9223372036854775808", .number(0x1p63)),
    ("-9223372036854775809", .number(-0x1p63)), ("1.0", .number(1)), ("1e3", .number(1000)),
    ("1E+2", .number(100)), ("25e-1", .number(2.5)), ("-0.0", .number(-0.0)), ("1e-400", .number(0)),
  ])
  func `only a literal without fraction and exponent that fits 64 bits is an integer`(text: String, value: JSON) throws
  {
    #expect(try JSON(text) == value)
  }

  @Test func `a number of a hundred thousand digits is parsed or refused`() throws {
    let digits = String(repeating: "7", count: 100_000)
    #expect(throws: JSONError.self) { try JSON(digits) }
    #expect(try JSON("0." + digits) == .number(7.0 / 9))
  }

  @Test(arguments: [
    (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u20AC""#, "Aé€"),
    (#""\ud83d\ude00""#, "😀"), (#""\u0000""#, "\0"), ("\"é€😀\u{7F}\"", "é€😀\u{7F}"),
    (#""a long string, plain\nand then not""#, "a long string, plain\nand then not"),
  ])
  func `escapes are decoded`(text: String, value: String) throws {
    #expect(try JSON(text) == .string(value))
  }

  @Test(arguments: [
    "", " ", "[", "[1,", "[1,]", "[,1]", "[1 2]", "{", #"{"a""#, #"{"a":}"#, #"{"a":1,}"#, #"{a:1}"#, #"{"a" 1}"#,
    "tru",
    "True", "nul", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "NaN", "Infinity", "'a'", #""abc"#, #""\"#,
    #""\x""#,
    #""\u12"#, #""\u12g4""#, #""\uD800""#, #""\uD800x""#, #""\uD800\n""#, #""\uDC00""#, #""\uD800\uD800""#,
    #""\uDE00\uD83D""#, "\"a\tb\"", "\"a\nb\"", "\"a\0b\"", "1 2", "{}}", "[]]", "1e400", "-1e400", "\u{FEFF}1",
    "/**/1",
  ])
  func `a text that is not JSON is refused`(text: String) {
    #expect(throws: JSONError.self) { try JSON(text) }
  }

  @Test(
    arguments: [
      [0x80], [0xC3], [0xC0, 0xAF], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xC3, 0x28],
    ] as [[UInt8]])
  func `a string that is not UTF-8 is refused`(bytes: [UInt8]) {
    let quote = UInt8(ascii: "\"")
    #expect(throws: JSONError.self) { try JSON(parsing: [quote] + bytes + [quote]) }
    #expect(throws: JSONError.self) { try JSON(parsing: [quote] + Array(#"\n"#.utf8) + bytes + [quote]) }
  }

  @Test(arguments: 0..<24)
  func `an error is found at every position in a word of eight bytes`(offset: Int) throws {
    let plain = String(repeating: "a", count: offset)
    for fault in ["\u{1F}", "\0", "\n"] {
      let error = #expect(throws: JSONError.self) { try JSON("\"\(plain)\(fault)aaaaaaaaaaaa\"") }
      #expect(error?.offset == offset + 1)
    }
    #expect(try JSON("\"\(plain)\\\"\u{7F}é aaaaaaaaaa\"") == .string(plain + "\"\u{7F}é aaaaaaaaaa"))
  }

  @Test func `the error has the position`() {
    let error = #expect(throws: JSONError.self) { try JSON(#"{"a":1,"b":x}"#) }
    #expect(error?.offset == 11)
    let end = #expect(throws: JSONError.self) { try JSON("[1") }
    #expect(end?.offset == 2)
  }

  @Test func `two members with equal unescaped names are refused`() {
    #expect(throws: JSONError(reason: "duplicate member name", offset: 7)) { try JSON(#"{"a":1,"a":2}"#) }
    #expect(throws: JSONError.self) { try JSON(#"{"a":1,"b":2,"\u0061":3}"#) }
    #expect(throws: JSONError.self) { try JSON(#"[{"x":{"":1,"":2}}]"#) }
    #expect(throws: Never.self) { try JSON(#"{"a":{"a":1},"b":{"a":1}}"#) }
  }

  @Test func `names that only look alike are different names`() throws {
    let value = try JSON(#"{"\u00e9":1,"e\u0301":2,"K":3,"\u212a":4}"#)
    guard case .object(let object) = value else { return #expect(Bool(false)) }
    #expect(object["\u{E9}"] == .integer(1))
    #expect(object["e\u{301}"] == .integer(2))
    #expect(object["K"] == .integer(3))
    #expect(object["\u{212A}"] == .integer(4))
    #expect(object["k"] == nil)
  }

  @Test func `equal names are found among a hundred thousand`() throws {
    var members = (0..<100_000).map { #""name \#($0)":\#($0)"# }
    let value = try JSON("{\(members.joined(separator: ","))}")
    guard case .object(let object) = value else { return #expect(Bool(false)) }
    #expect(object.members.count == 100_000)
    members.append(#""name 17":0"#)
    #expect(throws: JSONError.self) { try JSON("{\(members.joined(separator: ","))}") }
  }

  @Test(arguments: [("[", "]"), (#"{"a":"#, "}")])
  func `nesting is accepted up to the limit and refused beyond it, on a thread's small stack`(
    open: String, close: String
  ) {
    func nested(_ depth: Int) -> String {
      String(repeating: open, count: depth) + "0" + String(repeating: close, count: depth)
    }
    let texts = [nested(512), nested(513), nested(100_000), String(repeating: open, count: 100_000)]
    let results = Locked<[Bool]?>(nil)
    startThread(name: "parser") {
      let isRead = texts.map { (try? JSON($0)) != nil }
      results.withLock { $0 = isRead }
      results.notify()
    }
    #expect(results.wait { $0 } == [true, false, false, false])
  }

  @Test func `depth decreases when an array or object ends`() throws {
    let texts = Array(repeating: #"[{"a":[]}]"#, count: 1000)
    #expect(throws: Never.self) { try JSON("[\(texts.joined(separator: ","))]") }
  }

  @Test func `arbitrary bytes are parsed or refused`() {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<2000 {
      var bytes = Array(JSON.random(depth: 3, using: &generator).text.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &generator)
        case 1: bytes.remove(at: index)
        default: bytes.insert(#"[]{}",:\0-.eE"#.utf8.randomElement(using: &generator)!, at: index)
        }
        if bytes.isEmpty { bytes = [0x30] }
      }
      let theirs = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
      let ours = try? JSON(parsing: bytes)
      // Foundation accepts more in places, so only one direction can be checked.
      if ours != nil { #expect(theirs != nil, "seed \(seed): \(bytes)") }
    }
  }
}

/// The files of nst/JSONTestSuite, if they are beside the package or in a folder above it.
struct JSONTestSuite {
  static let folder: URL? = {
    var folder = URL(filePath: #filePath)
    while folder.path.count > 1 {
      folder.deleteLastPathComponent()
      let suite = folder.appending(path: "shared/json-test-suite")
      if FileManager.default.fileExists(atPath: suite.path) { return suite }
    }
    return nil
  }()

  static let files: [String] = {
    guard let folder, let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else { return [] }
    return names.filter { $0.hasSuffix(".json") }.sorted()
  }()

  /// The suite tests the grammar alone; the protocol refuses these.
  private static func hasEqualNames(_ name: String) -> Bool { name.hasPrefix("y_object_duplicated_key") }

  @Test(.enabled(if: folder != nil), arguments: files)
  func `texts that the suite accepts are parsed, texts that it rejects are refused`(name: String) throws {
    let folder = try #require(Self.folder)
    let text = [UInt8](try Data(contentsOf: folder.appending(path: name)))
    let isRead = (try? JSON(parsing: text)) != nil
    if name.hasPrefix("y_") { #expect(isRead != Self.hasEqualNames(name)) }
    if name.hasPrefix("n_") { #expect(!isRead) }
  }

  @Test(.enabled(if: folder != nil), arguments: files)
  func `each file as a raw line gets its answer, and so does the next line`(name: String) throws {
    let folder = try #require(Self.folder)
    let text = [UInt8](try Data(contentsOf: folder.appending(path: name)))
    let next = #"{"id":1,"method":"load"}"#
    var decoded: [Incoming] = []
    var splitter = LineSplitter(maxLine: 1 << 25)
    // Not the first line of the stream, since a byte order mark would be dropped there.
    (Array("0\n".utf8) + text + [0x0A] + Array(next.utf8)).withUnsafeBytes { bytes in
      splitter.feed(bytes) { if case .text(let line) = $0 { decoded.append(Incoming(line: line)) } }
    }
    splitter.finish { if case .text(let line) = $0 { decoded.append(Incoming(line: line)) } }
    #expect(decoded.last == .call(load(1)))
    let lines = text.split(separator: 0x0A).filter { !$0.allSatisfy { [0x20, 0x09, 0x0D].contains($0) } }
    #expect(decoded.count == lines.count + 2)
    let codes = decoded.dropFirst().dropLast().compactMap { incoming in
      if case .call(.refused(let error, id: _)) = incoming { error.code } else { nil as Int? }
    }
    if name.hasPrefix("y_"), lines.count == 1 { #expect(codes.contains(-32700) == Self.hasEqualNames(name)) }
    if name.hasPrefix("n_"), lines.count == 1 { #expect(codes == [-32700]) }
  }
}

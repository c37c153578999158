import LineRPC

/// Repeatable random numbers: a failing test names its seed.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  /// SplitMix64.
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension JSON {
  static func random(depth: Int, using generator: inout SeededGenerator) -> JSON {
    switch Int.random(in: 0..<(depth > 0 ? 9 : 7), using: &generator) {
    case 0: return .null
    case 1: return .bool(.random(using: &generator))
    case 2: return .integer(.random(in: .min ... .max, using: &generator))
    case 3: return .integer(.random(in: -9...9, using: &generator))
    case 4:
      let number = Double(bitPattern: generator.next())
      return .number(number.isFinite ? number : 0.5)
    case 5, 6: return .string(.random(using: &generator))
    case 7:
      return .array(
        (0..<Int.random(in: 0...4, using: &generator)).map { _ in random(depth: depth - 1, using: &generator) })
    default:
      var object = JSONObject()
      for _ in 0..<Int.random(in: 0...20, using: &generator) {
        object.set(.random(using: &generator), random(depth: depth - 1, using: &generator))
      }
      return .object(object)
    }
  }

  init(_ text: String) throws { try self.init(parsing: Array(text.utf8)) }

  var text: String {
    var writer = JSONWriter()
    writer.value(self)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension String {
  static func random(using generator: inout SeededGenerator) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0...20, using: &generator) {
      let limits: [UInt32] = [0x20, 0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000]
      let value = UInt32.random(in: 0..<limits.randomElement(using: &generator)!, using: &generator)
      text.unicodeScalars.append(Unicode.Scalar(value) ?? "\u{FFFD}")
    }
    return text
  }
}

extension Incoming {
  init(_ text: String) { self = Array(text.utf8).withUnsafeBytes { Incoming(line: $0) } }
}

/// A call of `load` without params.
func load(_ id: Int64?) -> Call {
  .request(Request(id: id.map { .integer($0) }, method: "load", params: [:]))
}

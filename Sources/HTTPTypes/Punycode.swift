/// Encodes a label of a domain name in ASCII (RFC 3492), without the prefix `xn--`.
enum Punycode {
  /// nil if the encoded label would be longer than 63 bytes.
  static func encode(_ label: [UInt32]) -> [UInt8]? {
    guard label.count < 60 else { return nil }
    var output = label.filter { $0 < 0x80 }.map { UInt8($0) }
    let basicCount = output.count
    var handled = basicCount
    if basicCount > 0 { output.append(UInt8(ascii: "-")) }
    var codePoint: UInt32 = 0x80
    var delta = 0
    var bias = 72
    // With at most sixty code points below 2^21, no number here can overflow.
    while handled < label.count, let next = label.lazy.filter({ $0 >= codePoint }).min() {
      delta += Int(next - codePoint) * (handled + 1)
      codePoint = next
      for scalar in label {
        if scalar < codePoint { delta += 1 }
        if scalar == codePoint {
          append(delta, bias: bias, to: &output)
          bias = adapted(delta, count: handled + 1, isFirst: handled == basicCount)
          delta = 0
          handled += 1
        }
      }
      delta += 1
      codePoint += 1
    }
    return output.count <= 59 ? output : nil
  }

  /// Appends a number in digits of a varying base, the lowest digit first.
  private static func append(_ number: Int, bias: Int, to output: inout [UInt8]) {
    var rest = number
    var weight = 36
    while true {
      let threshold = min(max(weight - bias, 1), 26)
      guard rest >= threshold else { return output.append(digit(rest)) }
      output.append(digit(threshold + (rest - threshold) % (36 - threshold)))
      rest = (rest - threshold) / (36 - threshold)
      weight += 36
    }
  }

  private static func digit(_ value: Int) -> UInt8 {
    value < 26 ? UInt8(ascii: "a") + UInt8(value) : UInt8(ascii: "0") + UInt8(value - 26)
  }

  private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
    var rest = isFirst ? delta / 700 : delta / 2
    rest += rest / count
    var bias = 0
    while rest > 455 {
      rest /= 35
      bias += 36
    }
    return bias + 36 * rest / (rest + 38)
  }
}

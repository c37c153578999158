/// The facts in a message between the worker and a decoder.
extension ImageFacts {
  private static let hashName = "perceptualHash"

  func add(to message: inout CodecMessage) {
    message[Self.hashName] = perceptualHash.map { String($0, radix: 16) }
    message["exif"] = exif.map { _ in "" }
    message["gps"] = gps.map { _ in "" }
    for (field, value) in (exif ?? [:]).merging(gps ?? [:], uniquingKeysWith: { value, _ in value }) {
      message["exif.\(field.rawValue)"] =
        switch value {
        case .text(let text): text
        case .number(let number): "\(number)"
        }
    }
  }

  /// Nil if a fact is not valid.
  init?(_ message: CodecMessage) {
    self.init()
    if let digits = message[Self.hashName] {
      guard let hash = UInt64(digits, radix: 16) else { return nil }
      perceptualHash = hash
    }
    for (name, fields, fact) in [("exif", EXIFField.others, \ImageFacts.exif), ("gps", EXIFField.position, \.gps)] {
      guard message[name] != nil else { continue }
      var values: [EXIFField: EXIFValue] = [:]
      for field in fields {
        guard let text = message["exif.\(field.rawValue)"] else { continue }
        guard let value = EXIFValue(text, isText: field.isText) else { return nil }
        values[field] = value
      }
      self[keyPath: fact] = values
    }
  }
}

extension EXIFValue {
  fileprivate init?(_ text: String, isText: Bool) {
    if isText {
      self.init(text: Array(text.utf8)[...])
    } else {
      guard let number = Double(text), number.isFinite else { return nil }
      self = .number(number)
    }
  }
}

/// The facts in a message between the worker and a decoder.
extension ImageFacts {
  private static let hashName = "perceptualHash"

  func add(to message: inout CodecMessage) {
    message[Self.hashName] = perceptualHash.map { String($0, radix: 16) }
    message["exif"] = exif.map { _ in "" }
    message["gps"] = gps.map { _ in "" }
    container?.add(to: &message)
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
    if message["container"] != nil {
      guard let facts = ContainerFacts(message) else { return nil }
      container = facts
    }
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

extension ContainerFacts {
  private static let answers: [(String, any WritableKeyPath<ContainerFacts, Bool?> & Sendable)] = [
    ("container.hasAlpha", \.hasAlpha), ("container.hasGPS", \.hasGPS), ("container.c2pa", \.c2pa),
  ]

  fileprivate func add(to message: inout CodecMessage) {
    message["container"] = ""
    for (name, path) in Self.answers { message[number: name] = self[keyPath: path].map { $0 ? 1 : 0 } }
    message["container.colorSpace"] = colorSpace
    message[number: "container.bitDepth"] = bitDepth
  }

  fileprivate init?(_ message: CodecMessage) {
    self.init()
    for (name, path) in Self.answers where message[name] != nil {
      guard let number = message[number: name], number <= 1 else { return nil }
      self[keyPath: path] = number == 1
    }
    if let name = message["container.colorSpace"] {
      guard case .text(let text)? = EXIFValue(text: Array(name.utf8)[...]) else { return nil }
      colorSpace = text
    }
    if message["container.bitDepth"] != nil {
      guard let depth = message[number: "container.bitDepth"], (1...64).contains(depth) else { return nil }
      bitDepth = depth
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

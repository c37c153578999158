/// Facts about an image that a decoder computes when a host asks for them.
public struct FactSet: OptionSet, Sendable, Hashable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let perceptualHash = FactSet(rawValue: 1)
  /// The fields of `EXIFField.others`.
  public static let exif = FactSet(rawValue: 2)
  /// The fields of `EXIFField.position`.
  public static let gps = FactSet(rawValue: 4)

  /// The facts that there are.
  public init(perceptualHash: Bool, exif: Bool, gps: Bool) {
    self = []
    if perceptualHash { insert(.perceptualHash) }
    if exif { insert(.exif) }
    if gps { insert(.gps) }
  }

  /// All facts, with the names that hosts give them.
  public static let named: [(name: String, fact: FactSet)] = [
    ("exif", .exif), ("gps", .gps), ("perceptualHash", .perceptualHash),
  ]
}

/// The facts that a decoder has computed. A fact that was not asked for is nil.
public struct ImageFacts: Sendable, Hashable {
  /// See `PerceptualHash`.
  public var perceptualHash: UInt64?
  /// The fields that the image has; empty without EXIF data.
  public var exif: [EXIFField: EXIFValue]?
  public var gps: [EXIFField: EXIFValue]?

  public init() {}

  /// The facts that were computed.
  var known: FactSet { FactSet(perceptualHash: perceptualHash != nil, exif: exif != nil, gps: gps != nil) }
}

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

/// A field of an image's EXIF data (CIPA DC-008) that hosts may get. No other field leaves the decoder.
public enum EXIFField: String, Sendable, Hashable, CaseIterable {
  case orientation, dateTimeOriginal, make, model, lensModel, exposureTime, fNumber, iso, focalLength
  case focalLengthIn35mm, artist, copyright
  case latitude, longitude, altitude

  /// The fields that are the position of the camera.
  public static let position: [EXIFField] = [.latitude, .longitude, .altitude]
  public static let others: [EXIFField] = allCases.filter { !$0.isPosition }

  public var isPosition: Bool { Self.position.contains(self) }

  /// The number of the field in its directory (CIPA DC-008 sections 4.6.4 to 4.6.8).
  package var tag: Int {
    switch self {
    case .orientation: 274
    case .make: 271
    case .model: 272
    case .artist: 315
    case .copyright: 33_432
    case .exposureTime: 33_434
    case .fNumber: 33_437
    case .iso: 34_855
    case .dateTimeOriginal: 36_867
    case .focalLength: 37_386
    case .focalLengthIn35mm: 41_989
    case .lensModel: 42_036
    case .latitude: 2
    case .longitude: 4
    case .altitude: 6
    }
  }

  package var isText: Bool {
    switch self {
    case .dateTimeOriginal, .make, .model, .lensModel, .artist, .copyright: true
    default: false
    }
  }
}

/// The value of a field.
public enum EXIFValue: Sendable, Hashable {
  /// At most `maxLength` bytes of UTF-8 without control characters.
  case text(String)
  /// A finite number.
  case number(Double)

  /// The maximum length of a text in bytes. All texts together fit into a message of a decoder.
  package static let maxLength = 200

  /// A text from a file, without spaces at its ends. Nil if it is empty, too long, not UTF-8, or has control
  /// characters.
  package init?(text bytes: ArraySlice<UInt8>) {
    let text = bytes.drop { $0 == 0x20 }
    guard let last = text.lastIndex(where: { $0 != 0x20 }) else { return nil }
    let trimmed = text[...last]
    guard trimmed.count <= Self.maxLength, let string = String(validating: trimmed, as: UTF8.self),
      !string.unicodeScalars.contains(where: Self.isControl)
    else { return nil }
    self = .text(string)
  }

  /// Characters that show nothing and could deceive a reader or end a line: categories Cc, Cf, Zl and Zp of Unicode.
  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}

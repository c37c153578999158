/// A message between the worker and a decoder process: lines `name=value`, ended by an empty line.
///
/// A decoder is a parent, which loads the libraries and announces its formats once, and a child, which the parent forks
/// for each image and which has a socket of its own. The worker sends the child one request at a time. The descriptors
/// of the input and, if there is one, the output come with its first byte. The child answers with one message and ends;
/// the parent then sends its status. Neither side trusts the other: a message that does not follow the format is parsed
/// as nil.
package struct CodecMessage: Sendable, Hashable {
  /// The maximum length of a message in bytes.
  package static let maxLength = 16 << 10

  private struct Field: Sendable, Hashable {
    let name, value: String
  }

  private static let newline = UInt8(ascii: "\n")

  /// The fields, of which a later one replaces an earlier one of its name.
  private var fields: [Field] = []

  package init() {}

  package subscript(name: String) -> String? {
    get { fields.last { $0.name == name }?.value }
    set {
      guard let newValue else { return fields.removeAll { $0.name == name } }
      // A line break in a value would start another field.
      let value = newValue.utf8.lazy.map { $0 == Self.newline ? UInt8(ascii: " ") : $0 }
      fields.append(Field(name: name, value: String(decoding: value, as: UTF8.self)))
    }
  }

  /// A non-negative number of at most 18 digits.
  package subscript(number name: String) -> Int? {
    get { self[name].flatMap { $0.utf8.count <= 18 ? Int($0) : nil }.flatMap { $0 < 0 ? nil : $0 } }
    set { self[name] = newValue.map { String($0) } }
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(512)
    for field in fields {
      bytes += field.name.utf8
      bytes.append(UInt8(ascii: "="))
      bytes += field.value.utf8
      bytes.append(Self.newline)
    }
    bytes.append(Self.newline)
    return bytes
  }

  /// Removes the first message from the front of the received bytes. Nil if it is not complete yet.
  package init?(takenFrom received: inout [UInt8]) {
    guard
      let end = received.indices.dropFirst().first(where: {
        received[$0] == Self.newline && received[$0 - 1] == Self.newline
      })
    else { return nil }
    for line in received[..<end].split(separator: Self.newline) {
      guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let (name, value) = (line[..<equals], line[(equals + 1)...])
      fields.append(Field(name: String(decoding: name, as: UTF8.self), value: String(decoding: value, as: UTF8.self)))
    }
    received.removeSubrange(...end)
  }
}

/// Encodes a list of formats as one value.
extension [ImageFormat] {
  package init(names: String) { self = names.split(separator: ",").compactMap { ImageFormat(rawValue: String($0)) } }

  package var names: String { map(\.rawValue).joined(separator: ",") }
}

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

  private var fields: [String: String] = [:]

  package init() {}

  package subscript(name: String) -> String? {
    get { fields[name] }
    // A line break in a value would start another field.
    set { fields[name] = newValue.map { String($0.map { $0.isNewline ? " " : $0 }) } }
  }

  /// A non-negative number of at most 18 digits.
  package subscript(number name: String) -> Int? {
    get { fields[name].flatMap { $0.utf8.count <= 18 ? Int($0) : nil }.flatMap { $0 < 0 ? nil : $0 } }
    set { fields[name] = newValue.map { String($0) } }
  }

  package var bytes: [UInt8] {
    let lines = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }
    return Array((lines.joined() + "\n").utf8)
  }

  /// Removes the first message from the front of the received bytes. Nil if it is not complete yet.
  package init?(takenFrom received: inout [UInt8]) {
    let newline = UInt8(ascii: "\n")
    guard
      let end = received.indices.dropFirst().first(where: { received[$0] == newline && received[$0 - 1] == newline })
    else { return nil }
    for line in received[..<end].split(separator: newline) {
      let pair = line.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else { continue }
      fields[String(decoding: pair[0], as: UTF8.self)] = String(decoding: pair[1], as: UTF8.self)
    }
    received.removeSubrange(...end)
  }
}

/// Encodes a list of formats as one value.
extension [ImageFormat] {
  package init(names: String) { self = names.split(separator: ",").compactMap { ImageFormat(rawValue: String($0)) } }

  package var names: String { map(\.rawValue).joined(separator: ",") }
}

internal import LineRPC

/// Compares what a session does in a replay with what it did when it was recorded.
enum EffectComparison {
  /// The members of lines for the host whose values depend on the machine or on its speed, and are not compared.
  static let maskedMembers: Set<String> = [
    "decoders", "pid", "resolver", "rssBytes", "sandbox", "usedAt", "uses",
  ]

  /// The path of the first member that differs, such as `sent.result.bytes`; nil if nothing differs.
  static func difference(_ recorded: JSON, _ replayed: JSON, at path: String = "") -> String? {
    switch (recorded, replayed) {
    case (.object(let one), .object(let other)):
      for member in one.members where !maskedMembers.contains(member.name) {
        let path = path.isEmpty ? member.name : "\(path).\(member.name)"
        guard let value = other[member.name] else { return path }
        if let found = difference(member.value, value, at: path) { return found }
      }
      let added = other.members.first { !maskedMembers.contains($0.name) && one[$0.name] == nil }
      return added.map { path.isEmpty ? $0.name : "\(path).\($0.name)" }
    case (.array(let one), .array(let other)):
      for (index, pair) in zip(one, other).enumerated() {
        if let found = difference(pair.0, pair.1, at: "\(path)[\(index)]") { return found }
      }
      return one.count == other.count ? nil : "\(path)[\(min(one.count, other.count))]"
    default: return recorded == replayed ? nil : path
    }
  }
}

/// The first point at which a replay does something else than the recorded session.
public struct Difference: Error, Sendable {
  /// One or more lines for people.
  public let message: String
}

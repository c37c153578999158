internal import Text

/// The texts that stand for secrets: `redacted-1`, `redacted-2` and so on. Equal secrets have equal placeholders, so
/// that a replay makes the same comparisons. A placeholder stands for itself.
struct Placeholders: Sendable {
  private static let prefix = "redacted-"

  private var numbers: [ExactString: Int] = [:]

  mutating func placeholder(for secret: String) -> String {
    if secret.isEmpty || Self.isPlaceholder(secret) { return secret }
    let number = numbers[ExactString(secret)] ?? numbers.count + 1
    numbers[ExactString(secret)] = number
    return Self.prefix + String(number)
  }

  private static func isPlaceholder(_ text: String) -> Bool {
    text.hasPrefix(prefix) && text.utf8.dropFirst(prefix.utf8.count).allSatisfy { (48...57).contains($0) }
  }
}

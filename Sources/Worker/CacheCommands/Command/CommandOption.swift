internal import Text

/// An option of a command of `imageworker cache`.
struct CommandOption: Sendable {
  enum Kind: Sendable {
    case flag
    /// An option of the worker, with the same meaning.
    case ofWorker(OptionDefinition)
    case count(ClosedRange<Int>)
    /// Seconds, in the syntax of the worker's durations.
    case duration
    case choice([String])
    /// - check: returns the end of a sentence that begins with the option if the text is refused.
    case text(check: @Sendable (String) -> String?)
  }

  let name: String
  let placeholder: String
  let kind: Kind
  let help: String

  init(_ name: String, _ placeholder: String, _ kind: Kind, _ help: String) {
    (self.name, self.placeholder, self.kind, self.help) = (name, placeholder, kind, help)
  }

  static func flag(_ name: String, _ help: String) -> CommandOption { CommandOption(name, "", .flag, help) }

  /// The option of the worker with this name, which must exist.
  ///
  /// - Parameter help: replaces the worker's text if that does not fit.
  static func ofWorker(_ name: String, _ help: String? = nil) -> CommandOption {
    guard let definition = OptionDefinition.all.first(where: { $0.name == name }) else {
      preconditionFailure("the worker has no option --\(name)")
    }
    return CommandOption(name, definition.placeholder, .ofWorker(definition), help ?? definition.help)
  }

  var takesValue: Bool {
    switch kind {
    case .flag: false
    case .ofWorker(let definition): if case .flag = definition.kind { false } else { true }
    default: true
    }
  }

  /// The end of a sentence that begins with the option if the value is refused; nil otherwise.
  func problem(in value: String) -> String? {
    switch kind {
    case .flag, .ofWorker: return nil
    case .count(let range):
      guard let count = Int(value), range.contains(count) else {
        return "must be an integer from \(range.lowerBound) to \(range.upperBound)"
      }
    case .duration:
      if Quantity.duration(value) == nil { return "must be a duration of at most 36500d, such as 90s, 15m, 2h or 7d" }
    case .choice(let names):
      if !names.contains(value) { return "must be one of \(names.joined(separator: ", "))" }
    case .text(let check): return check(value)
    }
    return nil
  }
}

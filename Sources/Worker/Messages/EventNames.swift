internal import Loading

/// The events that a host can ask for, by name.
enum EventNames {
  static let optional: [(name: String, event: LoadRequest.Events)] = [
    ("started", .started), ("progress", .progress), ("retrying", .retrying), ("cached", .cached),
    ("preview", .preview),
  ]

  /// Names of events that only a prefetch has: the outcome of each of its items.
  static let prefetchOnly = ["completed", "failed"]

  /// Every event that the worker sends.
  static let all = optional.map(\.name) + prefetchOnly

  /// What is wrong with a name, or nil.
  static func check(_ name: String) -> String? {
    if optional.contains(where: { $0.name == name }) { return nil }
    return "must be one of \(optional.map(\.name).joined(separator: ", "))"
  }

  static func events(_ names: [String]) -> LoadRequest.Events {
    names.reduce(into: []) { events, name in
      if let event = optional.first(where: { $0.name == name })?.event { events.insert(event) }
    }
  }
}

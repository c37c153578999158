internal import Loading

/// The names of the events that a host can request.
enum EventNames {
  static let optional: [(name: String, event: LoadRequest.Events)] = [
    ("started", .started), ("progress", .progress), ("retrying", .retrying), ("cached", .cached),
    ("preview", .preview),
  ]

  /// Events for the outcome of each item, which only a prefetch sends.
  static let prefetchOnly = ["completed", "failed"]

  /// The names of all events.
  static let all = optional.map(\.name) + prefetchOnly

  /// The end of a sentence that begins with the name if it is refused, or nil.
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

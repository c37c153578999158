internal import HTTPTypes

/// The failures of loads since the start, by kind, with the latest example of each. Its size is bounded by the number
/// of kinds.
public struct FailureTable: Sendable {
  public struct Example: Sendable, Equatable {
    /// Without user info, query and fragment, and cut if it is long.
    public var url: String
    public var message: String
    public var status: Int?
    public var phase: LoadError.Phase?
    /// Unix seconds.
    public var time: Int
  }

  public struct Entry: Sendable {
    public var kind: LoadError.Kind
    public var count: Int
    public var latest: Example
  }

  private var entries: [LoadError.Kind: Entry] = [:]

  /// The entries, the most frequent kind first.
  public var all: [Entry] {
    entries.values.sorted { ($1.count, $0.kind.rawValue) < ($0.count, $1.kind.rawValue) }
  }

  /// Adds a failure. Cancelled loads are no failures.
  ///
  /// - Parameters:
  ///   - url: as the host gave it.
  ///   - time: Unix seconds.
  mutating func add(_ error: LoadError, url: String, at time: Int) {
    guard error.kind != .cancelled else { return }
    let example = Example(
      url: Self.redacted(url), message: Self.cut(error.message), status: error.status, phase: error.phase, time: time)
    entries[error.kind] = Entry(kind: error.kind, count: (entries[error.kind]?.count ?? 0) + 1, latest: example)
  }

  private static func redacted(_ url: String) -> String {
    if let resource = try? ResourceURL(url) { return cut(resource.redacted) }
    // It is no URL that can be loaded: drop what looks like a query or user info.
    let beforeQuery = url.prefix { $0 != "?" && $0 != "#" }
    let userInfoEnd = beforeQuery.lastIndex(of: "@").map { beforeQuery.index(after: $0) }
    return cut(String(beforeQuery[(userInfoEnd ?? beforeQuery.startIndex)...]))
  }

  private static func cut(_ text: String) -> String {
    text.utf8.count <= maxLength ? text : String(text.prefix(maxLength)) + "..."
  }

  /// The length in characters above which a text is cut. All kinds together must fit into one line of an answer.
  private static let maxLength = 500
}

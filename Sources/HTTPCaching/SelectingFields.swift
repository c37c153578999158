public import HTTPTypes
internal import Text

/// The fields of a request that matter given the stored responses of its URL: those that their Vary names, and those
/// with directives for the cache.
///
/// Two requests with equal values select the same stored responses (RFC 9111 section 4.1) and ask the same about them,
/// whatever their other fields, so one of them may be sent for both. The Vary of the new response decides whether it
/// serves both.
public struct SelectingFields: Sendable, Hashable {
  /// Sorted by name, so that equal names and values compare equal.
  private let fields: [Field]

  private struct Field: Hashable {
    let name: String
    /// Normalized (`Vary.normalized`); nil if the request does not have the field.
    let value: [ExactString]?
  }

  /// Fails if no response is stored, since any field may matter then, or if one has `Vary: *`, which says the same.
  public init?(of requestHeaders: HeaderFields, among stored: [CachedResponse]) {
    guard !stored.isEmpty else { return nil }
    var names: Set<String> = []
    for response in stored { names.formUnion(Vary.names(in: response.headers)) }
    guard !names.contains("*") else { return nil }
    for line in requestHeaders.lines where RequestDirectives.isRelevant(line.name) { names.insert(line.name) }
    fields = names.sorted().map { name in
      Field(name: name, value: Vary.normalized(requestHeaders[name], of: name))
    }
  }
}

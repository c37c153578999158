public import HTTPTypes
internal import Text

/// What of a request's fields counts where responses of its URL are stored: those that their Vary names, and those that
/// speak to the cache itself.
///
/// Two requests with equal ones select the same of what is stored (RFC 9111 section 4.1) and ask the same about it,
/// whatever else they send: one of them may ask for both. Whether what comes is for both its own Vary tells.
public struct SelectingFields: Sendable, Hashable {
  /// In the order of the names, so that the same names with the same values are equal.
  private let fields: [Field]

  private struct Field: Hashable {
    let name: String
    /// Without what makes no difference; nil where the request does not have the field.
    let value: [ExactString]?
  }

  /// Nil where no response is stored, which means that any field may matter, and where one has `Vary: *`, which says
  /// so.
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

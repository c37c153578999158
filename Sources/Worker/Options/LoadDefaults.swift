internal import HTTPTypes
internal import ImageStore
internal import Loading

/// What the options say of every load, worked out once for all of them.
///
/// An object, because each load looks here.
final class LoadDefaults: Sendable {
  let fields: RequestHeaders
  let events: LoadRequest.Events
  let timeout: Duration
  /// Nil for none.
  let deadline: Duration?
  let retries: Int
  let maxBytes: Int64
  /// What of a query makes no other image.
  let ignoredQuery: QueryNameFilter

  init(_ options: Options) {
    // Of the whole file: redirects lead to any host.
    let cookies = options.cookieFile.map { SHA256.digest(of: Array($0.utf8)).hexadecimal }
    fields = RequestHeaders(options.requestHeaders, alsoSent: cookies ?? "")
    events = EventNames.events(options.events)
    timeout = options.timeout.limit
    deadline = options.deadline == .zero ? nil : options.deadline
    retries = options.retries
    maxBytes = options.maxBytes
    ignoredQuery = QueryNameFilter(options.keyIgnoredQuery)
  }

  /// A request with everything as the options say.
  func request(url: String, source: LoadRequest.Source, key: String) -> LoadRequest {
    var request = LoadRequest(url: url, source: source, key: key, fields: fields)
    request.events = events
    request.timeout = timeout
    request.deadline = deadline
    request.retries = retries
    request.maxBytes = maxBytes
    return request
  }

  /// What a request sends that has these header fields for itself, in the place of the usual ones of those names.
  func fields(with own: HeaderFields) -> RequestHeaders {
    own.isEmpty ? fields : RequestHeaders(fields.all.replacing(own), own: own, alsoSent: fields.alsoSent)
  }
}

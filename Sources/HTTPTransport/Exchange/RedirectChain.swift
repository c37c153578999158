internal import HTTPTypes
internal import Text

/// The position of a transfer along its redirects, and the header fields that it may still send.
///
/// Fields that are meant for one origin (`RequestHeaders`) are not sent to another. The same holds for user information
/// in the URL; user information in a Location is sent to the Location. A redirect from http to https of the same host
/// keeps everything. One from https to http is one to another origin.
struct RedirectChain {
  private(set) var target: Target
  private(set) var redirects = 0
  private var headers: HeaderFields
  private var authorization: String?
  private let validatedURL: String?
  private let maxRedirects: Int

  init(_ request: TransferRequest) throws(TransferError) {
    if let problem = RequestHeaders.problem(in: request.headers) { throw TransferError(.invalidRequest, problem) }
    target = Target(request.url)
    headers = request.headers
    authorization = target.authorization
    validatedURL = request.validatedURL.flatMap { try? ResourceURL(final: $0).withoutUserInfo }
    if request.validatedURL != nil, validatedURL == nil { headers = RequestHeaders.withoutConditions(headers) }
    maxRedirects = request.maxRedirects
  }

  /// The fields that the request to the current target carries.
  var fields: HeaderFields {
    var fields = headers
    if let validatedURL, validatedURL != target.url { fields = RequestHeaders.withoutConditions(fields) }
    if let authorization, fields["authorization"] == nil { fields.append("authorization", authorization) }
    return fields
  }

  /// The URL to which a response redirects, if it does (RFC 9110 section 15.4). All requests are GETs, for which the
  /// status codes do not differ.
  static func location(status: Int, headers: HeaderFields) -> String? {
    switch status {
    case 301, 302, 303, 307, 308: headers.values(of: "location").first
    default: nil
    }
  }

  /// Makes the target of a redirect the current one.
  mutating func follow(_ location: String) throws(TransferError) {
    guard redirects < maxRedirects else { throw TransferError(.redirects, "more than \(maxRedirects) redirects") }
    let next: Target
    do {
      next = Target(try ResourceURL(location, relativeTo: target.resource))
    } catch {
      let what = error.kind == .unsupportedScheme ? "a scheme other than http and https" : "a malformed URL"
      throw TransferError(.redirects, "\(target.origin.hostAndPort) redirects to \(what)")
    }
    let isSameHost = next.origin.host == target.origin.host
    let isUpgrade = isSameHost && target.origin.scheme == "http" && next.origin.scheme == "https"
    if next.origin != target.origin, !isUpgrade {
      let isDowngrade = target.origin.scheme == "https" && next.origin.scheme == "http"
      headers = RequestHeaders.withoutCredentials(headers, isDowngrade: isDowngrade)
      authorization = nil
    }
    if let authorization = next.authorization { self.authorization = authorization }
    target = next
    redirects += 1
  }
}

/// The URL of one hop.
struct Target {
  let resource: ResourceURL
  /// Without user information.
  let url: String
  let origin: Origin
  /// Value of an `authorization` field (RFC 7617), made from the URL's user information.
  let authorization: String?

  init(_ resource: ResourceURL) {
    self.resource = resource
    url = resource.withoutUserInfo
    origin = resource.origin
    authorization = resource.basicCredentials.map { "Basic " + String(decoding: Base64.encode($0), as: UTF8.self) }
  }
}

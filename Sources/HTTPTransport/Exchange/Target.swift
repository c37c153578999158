internal import HTTPTypes
internal import Text

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

public import HTTPTypes

/// What the cache knows of one stored response. Times are Unix seconds.
public struct CachedResponse: Sendable, Hashable {
  public var status: Int
  /// As `Storing.fields` left them, and later 304s updated them.
  public var headers: HeaderFields
  /// Those fields of the request that the response's Vary names (`Vary.selectingFields`).
  public var selectingFields: HeaderFields
  /// When the request was sent that brought the response, or last validated it.
  public var requestTime: Int
  /// When its answer came: the moment since which `CachePolicy.maxAge` counts.
  public var responseTime: Int

  public init(
    status: Int = 200, headers: HeaderFields, selectingFields: HeaderFields = [:], requestTime: Int, responseTime: Int
  ) {
    self.status = status
    self.headers = headers
    self.selectingFields = selectingFields
    self.requestTime = requestTime
    self.responseTime = responseTime
  }
}

public import HTTPTypes

/// A stored response as the caching rules see it. Times are Unix seconds.
public struct CachedResponse: Sendable, Hashable {
  public var status: Int
  /// As returned by `Storing.fields` and updated by later 304s.
  public var headers: HeaderFields
  /// The fields of the request that the response's Vary names (`Vary.selectingFields`).
  public var selectingFields: HeaderFields
  /// Time at which the request was sent that fetched or last validated the response.
  public var requestTime: Int
  /// Time at which its answer arrived, from which `CachePolicy.maxAge` counts.
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

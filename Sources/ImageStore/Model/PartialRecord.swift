public import HTTPCaching

/// The row of a partial body, which exists from the creation of its temporary file until the body is complete,
/// discarded or resumed.
public struct PartialRecord: Sendable, Equatable {
  /// The requests that may resume the partial body.
  public struct Identity: Sendable, Hashable {
    public var key: String
    /// As in `StoredResponse`.
    public var partition: String
    /// A digest of all other properties of the request that may change the response.
    public var request: [UInt8]

    public init(key: String, partition: String, request: [UInt8]) {
      self.key = key
      self.partition = partition
      self.request = request
    }
  }

  public var identity: Identity
  public var url: String
  public var response: PartialResponse

  public init(_ response: PartialResponse, identity: Identity, url: String) {
    (self.response, self.identity, self.url) = (response, identity, url)
  }
}

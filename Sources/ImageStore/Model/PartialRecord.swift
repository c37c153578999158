public import HTTPTypes

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
  /// The URL that the response came from, after redirects.
  public var finalURL: String
  /// The validator of the representation.
  public var validator: String
  /// The header fields of the complete response.
  public var headers: HeaderFields
  /// The length of the complete body, if known.
  public var completeLength: Int64?

  public init(
    identity: Identity, url: String, finalURL: String, validator: String, headers: HeaderFields, completeLength: Int64?
  ) {
    self.identity = identity
    self.url = url
    self.finalURL = finalURL
    self.validator = validator
    self.headers = headers
    self.completeLength = completeLength
  }
}

public import HTTPTypes

/// What a temporary file is the beginning of: one row of the index, from when the file is begun until it is complete,
/// given up or taken up again.
public struct PartialRecord: Sendable, Equatable {
  /// Who may go on with it.
  public struct Identity: Sendable, Hashable {
    public var key: String
    /// As in `StoredResponse`.
    public var partition: String
    /// A digest of all else in the request that may make the answer differ.
    public var request: [UInt8]

    public init(key: String, partition: String, request: [UInt8]) {
      self.key = key
      self.partition = partition
      self.request = request
    }
  }

  public var identity: Identity
  public var url: String
  /// Where the response came from.
  public var finalURL: String
  /// What the representation is known by.
  public var validator: String
  /// The fields of the whole response.
  public var headers: HeaderFields
  /// Bytes of the whole body, where known.
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

public import HTTPTypes

/// A transport: `Transport`, or one that records or replays the transfers. `Transport` documents the methods.
public protocol Transferring: Sendable {
  func start(_ request: TransferRequest, consumer: any TransferConsumer) -> TransferID
  func resume(_ id: TransferID)
  func cancel(_ id: TransferID)

  @discardableResult
  func lookUp(_ origin: Origin, completion: @escaping @Sendable (NameResolution) -> Void) -> LookUpID
  func cancelLookUp(_ id: LookUpID)

  func configure(_ configuration: TransportConfiguration)
  func resolverStatistics(_ completion: @escaping @Sendable (ResolverStatistics?) -> Void)
}

extension Transport: Transferring {}

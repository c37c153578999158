public import HTTPTransport
public import HTTPTypes
internal import Threads

/// A transport without a network: the replayer delivers the recorded responses.
public final class ReplayTransport: Transferring {
  private struct State {
    var count: UInt64 = 0
    var consumers: [UInt64: any TransferConsumer] = [:]
    var lookUps: [UInt64: @Sendable (NameResolution) -> Void] = [:]
    var onEffect: (@Sendable (Effect) -> Void)?
  }

  private let state = Locked(State())

  public init() {}

  /// - Parameter onEffect: receives the transfers and lookups that the session starts.
  func setEffectHandler(_ onEffect: @escaping @Sendable (Effect) -> Void) { state.withLock { $0.onEffect = onEffect } }

  public func start(_ request: TransferRequest, consumer: any TransferConsumer) -> TransferID {
    let (number, onEffect) = state.withLock { state in
      state.count += 1
      state.consumers[state.count] = consumer
      return (state.count, state.onEffect)
    }
    onEffect?(.transfer(number, request))
    return TransferID(number: number)
  }

  public func lookUp(_ origin: Origin, completion: @escaping @Sendable (NameResolution) -> Void) -> LookUpID {
    let (number, onEffect) = state.withLock { state in
      state.count += 1
      state.lookUps[state.count] = completion
      return (state.count, state.onEffect)
    }
    onEffect?(.lookUp(number, origin: origin.description))
    return LookUpID(number: number)
  }

  /// The consumer of a running transfer.
  func consumer(of transfer: UInt64) -> (any TransferConsumer)? { state.withLock { $0.consumers[transfer] } }

  func end(_ transfer: UInt64) { state.withLock { $0.consumers[transfer] = nil } }

  func takeLookUp(_ number: UInt64) -> (@Sendable (NameResolution) -> Void)? {
    state.withLock { $0.lookUps.removeValue(forKey: number) }
  }

  // What these calls led to was recorded.
  public func resume(_ id: TransferID) {}
  public func cancel(_ id: TransferID) {}
  public func cancelLookUp(_ id: LookUpID) {}
  public func configure(_ configuration: TransportConfiguration) {}

  public func resolverStatistics(_ completion: @escaping @Sendable (ResolverStatistics?) -> Void) { completion(nil) }
}

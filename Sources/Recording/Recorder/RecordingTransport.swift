public import HTTPTransport
public import HTTPTypes
internal import Threads

/// A transport that records its transfers and name lookups.
public struct RecordingTransport: Transferring {
  private let transport: any Transferring
  private let recorder: Recorder
  /// The number of transfers and lookups so far.
  private let count = Locked<UInt64>(0)

  public init(_ transport: any Transferring, recorder: Recorder) {
    (self.transport, self.recorder) = (transport, recorder)
  }

  private func next() -> UInt64 {
    count.withLock { count in
      count += 1
      return count
    }
  }

  public func start(_ request: TransferRequest, consumer: any TransferConsumer) -> TransferID {
    let number = next()
    recorder.record(.transfer(number, request))
    return transport.start(request, consumer: RecordingConsumer(number, consumer, recorder))
  }

  public func lookUp(_ origin: Origin, completion: @escaping @Sendable (NameResolution) -> Void) -> LookUpID {
    let number = next()
    recorder.record(.lookUp(number, origin: origin.description))
    return transport.lookUp(origin) { [recorder] resolution in
      recorder.handle(.name(lookUp: number, resolution)) { completion(resolution) }
    }
  }

  public func resume(_ id: TransferID) { transport.resume(id) }
  public func cancel(_ id: TransferID) { transport.cancel(id) }
  public func cancelLookUp(_ id: LookUpID) { transport.cancelLookUp(id) }
  public func configure(_ configuration: TransportConfiguration) { transport.configure(configuration) }

  public func resolverStatistics(_ completion: @escaping @Sendable (ResolverStatistics?) -> Void) {
    transport.resolverStatistics(completion)
  }
}

/// Passes a response on to the consumer of a transfer, and records it.
private final class RecordingConsumer: TransferConsumer {
  private let number: UInt64
  private let consumer: any TransferConsumer
  private let recorder: Recorder

  init(_ number: UInt64, _ consumer: any TransferConsumer, _ recorder: Recorder) {
    (self.number, self.consumer, self.recorder) = (number, consumer, recorder)
  }

  func redirected(to url: String) -> Verdict {
    recorder.handle(.redirect(transfer: number, url)) { consumer.redirected(to: url) }
  }

  func received(head: ResponseHead) -> Verdict {
    recorder.handle(.response(transfer: number, head)) { consumer.received(head: head) }
  }

  func received(bytes: UnsafeRawBufferPointer) -> Verdict {
    recorder.handle(.body(transfer: number, count: bytes.count, Array(bytes))) { consumer.received(bytes: bytes) }
  }

  func finished(_ outcome: Result<TransferSummary, TransferError>) {
    recorder.handle(.end(transfer: number, outcome, body: nil)) { consumer.finished(outcome) }
  }
}

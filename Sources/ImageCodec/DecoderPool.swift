/// The decoder processes. Costs nothing before the first task.
public final class DecoderPool: Sendable {
  public init(_ settings: DecoderSettings) {}

  public func configure(_ settings: DecoderSettings) {}

  @discardableResult
  public func submit(
    _ task: DecodeTask, priority: Int, then: @escaping @Sendable (Result<Decoded, DecodeError>) -> Void
  ) -> DecodeTicket {
    then(.failure(.unavailable("not there yet")))
    return DecodeTicket(number: 0)
  }

  public func reprioritize(_ ticket: DecodeTicket, to priority: Int) {}
  public func cancel(_ ticket: DecodeTicket) {}
  public func formats(then: @escaping @Sendable (CodecFormats) -> Void) { then(CodecFormats()) }
  public var statistics: DecoderStatistics { DecoderStatistics() }
  public func shutDown() {}
}

/// Names a task that was given to the pool.
public struct DecodeTicket: Sendable, Hashable {
  let number: UInt64
}

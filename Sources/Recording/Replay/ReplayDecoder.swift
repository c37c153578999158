public import ImageCodec
public import Loading
public import Platform
internal import Threads

/// A decoder whose results the replayer delivers when it was recorded that the decodes had ended.
public final class ReplayDecoder: ImageDecoding {
  private struct Decode {
    var result: Result<Decoded, DecodeError>?
    let then: @Sendable (Result<Decoded, DecodeError>, _ start: Instant?) -> Void
  }

  private struct State {
    var count: UInt64 = 0
    var decodes: [UInt64: Decode] = [:]
    var onResult: (@Sendable () -> Void)?
  }

  private let decoder: any ImageDecoding
  private let state = Locked(State())

  public init(_ decoder: any ImageDecoding) { self.decoder = decoder }

  /// - Parameter onResult: called on any thread when a decode has ended.
  func setResultHandler(_ onResult: @escaping @Sendable () -> Void) { state.withLock { $0.onResult = onResult } }

  public func submit(
    _ task: DecodeTask, priority: Int,
    then: @escaping @Sendable (Result<Decoded, DecodeError>, _ start: Instant?) -> Void
  ) -> DecodeTicket {
    let number = state.withLock { state in
      state.count += 1
      state.decodes[state.count] = Decode(then: then)
      return state.count
    }
    return decoder.submit(task, priority: priority) { [state] result, _ in
      let onResult = state.withLock { state in
        state.decodes[number]?.result = result
        return state.onResult
      }
      onResult?()
    }
  }

  enum Progress { case unknown, running, ended }

  func progress(of decode: UInt64) -> Progress {
    state.withLock { state in
      guard let decode = state.decodes[decode] else { return .unknown }
      return decode.result == nil ? .running : .ended
    }
  }

  /// Delivers the result of a decode that has ended, or a failure instead.
  ///
  /// - Parameter start: the recorded time at which a decoder got the task.
  func deliver(_ decode: UInt64, failure: DecodeError?, start: Instant?) {
    guard let decode = state.withLock({ $0.decodes.removeValue(forKey: decode) }) else { return }
    if let failure { return decode.then(.failure(failure), start) }
    if let result = decode.result { decode.then(result, start) }
  }

  public func reprioritize(_ ticket: DecodeTicket, to priority: Int) { decoder.reprioritize(ticket, to: priority) }
  // Whether the result came first was recorded.
  public func cancel(_ ticket: DecodeTicket) {}
  public func formats(then: @escaping @Sendable (CodecFormats) -> Void) { decoder.formats(then: then) }
  public var statistics: DecoderStatistics { decoder.statistics }
}

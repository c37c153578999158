public import ImageCodec
public import Loading
public import Platform
internal import Threads

/// A decoder that records when its decodes end, and which failed for reasons of the machine.
public struct RecordingDecoder: ImageDecoding {
  private let decoder: any ImageDecoding
  private let recorder: Recorder
  /// The number of decodes so far.
  private let count = Locked<UInt64>(0)

  public init(_ decoder: any ImageDecoding, recorder: Recorder) {
    (self.decoder, self.recorder) = (decoder, recorder)
  }

  public func submit(
    _ task: DecodeTask, priority: Int,
    then: @escaping @Sendable (Result<Decoded, DecodeError>, _ start: Instant?) -> Void
  ) -> DecodeTicket {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return decoder.submit(task, priority: priority) { [recorder] result, start in
      var failure: DecodeError?
      if case .failure(let error) = result { failure = error }
      recorder.handle(.decoded(decode: number, failure: failure, start: start)) { then(result, start) }
    }
  }

  public func reprioritize(_ ticket: DecodeTicket, to priority: Int) { decoder.reprioritize(ticket, to: priority) }
  public func cancel(_ ticket: DecodeTicket) { decoder.cancel(ticket) }
  public func formats(then: @escaping @Sendable (CodecFormats) -> Void) { decoder.formats(then: then) }
  public var statistics: DecoderStatistics { decoder.statistics }
}

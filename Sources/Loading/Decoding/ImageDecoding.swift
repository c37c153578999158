public import ImageCodec
public import Platform

/// A decoder. `then` is called exactly once for each task, on any thread, with the result and the time at which a
/// process got the task; nil if none did.
public protocol ImageDecoding: Sendable {
  /// - Parameter priority: higher values are decoded first.
  func submit(
    _ task: DecodeTask, priority: Int,
    then: @escaping @Sendable (Result<Decoded, DecodeError>, _ start: Instant?) -> Void
  ) -> DecodeTicket
  func reprioritize(_ ticket: DecodeTicket, to priority: Int)
  /// Cancels a task. Its completion is still called, with `cancelled` or with the result if that came first.
  func cancel(_ ticket: DecodeTicket)
  func formats(then: @escaping @Sendable (CodecFormats) -> Void)
  var statistics: DecoderStatistics { get }
}

extension DecoderPool: ImageDecoding {}

extension LoadError {
  init(_ error: DecodeError) {
    switch error {
    case .corrupt(let message): self.init(.corrupt, message)
    case .unsupportedFormat(let message): self.init(.unsupportedFormat, message)
    case .tooManyPixels(let message), .outOfMemory(let message): self.init(.tooManyPixels, message)
    case .cropOutside(let message):
      self.init(.invalidParams, message)
      member = "transform.crop"
    case .crashed: self.init(.decoderCrashed, "the decoder crashed")
    case .timedOut: self.init(.decodeTimeout, "the decoder timed out")
    case .cancelled: self.init(.cancelled, "cancelled")
    case .io(let message): self.init(.io, message)
    case .unavailable(let message): self.init(.unsupportedFormat, "no decoder is available: \(message)")
    }
  }
}

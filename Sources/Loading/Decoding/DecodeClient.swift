public import ImageCodec
public import Platform

/// The loads that wait for decodes, as `DecodeCoordinator` sees them.
@LoadingActor
protocol DecodeClient: AnyObject {
  /// The load with this ID; nil if it has ended.
  func activeLoad(_ id: LoadID) -> ActiveLoad?
  /// Delivers the candidate that a decode produced, which may need a further decode.
  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus, at stage: DeliveryStage)
  /// Delivers the final result of a decode.
  func complete(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>, at stage: DeliveryStage)
  /// Has the load look for the image once more. A `cached` event is dropped instead.
  func lostSource(for load: ActiveLoad, at stage: DeliveryStage)
  /// Has a damaged image transferred again for the load, which gets the new one. Returns false if that may not be.
  ///
  /// - Parameter mayStart: whether the load may start the transfer; otherwise it can only join one.
  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool
  /// Ends a load that waits for a decode at its deadline.
  func deadlinePassed(for load: ActiveLoad)
}

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
    case .unsupportedFormat(let message, _): self.init(.unsupportedFormat, message)
    case .tooManyPixels(let message, _), .outOfMemory(let message): self.init(.tooManyPixels, message)
    case .cropOutside(let message):
      self.init(.invalidParams, message)
      member = "transform.crop"
    case .tooLarge(let message, _): self.init(.tooLarge, message)
    case .ofRendition(_, let error): self.init(error)
    case .crashed: self.init(.decoderCrashed, "the decoder crashed")
    case .killed:
      self.init(.decoderCrashed, "the system killed the decoder twice, as it does when it has no memory left")
      isTransient = true
    case .timedOut(let timeout):
      let message =
        switch timeout.limit {
        case .processorTime: "the decode used all the processor time that --decode-timeout allows"
        case .elapsedTime: "the decode waited for the processor"
        }
      self.init(.decodeTimeout, message)
      decodeTimeout = timeout
    case .cancelled: self.init(.cancelled, "cancelled")
    case .io(let message): self.init(.io, message)
    case .diskFull(let message): self.init(.diskFull, message)
    case .unavailable(let message): self.init(.internal, "no decoder is available: \(message)")
    }
    figures = error.figures
  }
}

internal import ImageCodec

/// The failure of a decode that may depend on the machine, so that a replay repeats it instead of decoding.
struct MachineFailure {
  enum Kind: String, CaseIterable {
    case crashed, timedOut, cancelled, outOfMemory, io, unavailable
  }

  let kind: Kind
  /// Empty for the kinds without one.
  let message: String

  init(kind: Kind, message: String) { (self.kind, self.message) = (kind, message) }

  /// Nil for an error that the image or the transform determines.
  init?(_ error: DecodeError) {
    switch error {
    case .corrupt, .unsupportedFormat, .tooManyPixels, .cropOutside: return nil
    case .crashed: (kind, message) = (.crashed, "")
    case .timedOut: (kind, message) = (.timedOut, "")
    case .cancelled: (kind, message) = (.cancelled, "")
    case .outOfMemory(let text): (kind, message) = (.outOfMemory, text)
    case .io(let text): (kind, message) = (.io, text)
    case .unavailable(let text): (kind, message) = (.unavailable, text)
    }
  }

  var error: DecodeError {
    switch kind {
    case .crashed: .crashed
    case .timedOut: .timedOut
    case .cancelled: .cancelled
    case .outOfMemory: .outOfMemory(message)
    case .io: .io(message)
    case .unavailable: .unavailable(message)
    }
  }
}

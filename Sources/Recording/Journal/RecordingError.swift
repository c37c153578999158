/// The reason why a session cannot be recorded, or a recording cannot be replayed.
public struct RecordingError: Error, Sendable, Equatable {
  /// One sentence for people.
  public let message: String

  public init(_ message: String) { self.message = message }
}

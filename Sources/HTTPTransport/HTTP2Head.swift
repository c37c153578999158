/// The header of an answer over HTTP/2, which libcurl before 8.1 may deliver only in part.
///
/// It has the whole header when it delivers the first 16 kB. It delivers the next part, and then a body that came with
/// it, when the socket is ready again, which it need never be.
struct HTTP2Head {
  /// The number of pieces of header and body delivered, plus the number of pauses lifted.
  var inputs = 0
  private var inputsBefore = 0
  private(set) var isInParts = false

  /// Whether another call may deliver more of what curl holds. To be asked after each call.
  mutating func mayHaveMore(isComplete: Bool) -> Bool {
    defer { inputsBefore = inputs }
    if !isComplete { isInParts = true }
    return isInParts && inputs != inputsBefore
  }
}

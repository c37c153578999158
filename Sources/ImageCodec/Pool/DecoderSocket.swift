internal import CSystem
internal import Platform

/// The worker's end of a socket to a decoder's parent or child. Closed with this object.
final class DecoderSocket {
  enum Reception {
    case nothing
    case reply(CodecReply)
    /// The other end is closed.
    case closed
    /// The bytes are not a message.
    case invalid
  }

  let descriptor: Int32
  private var received: [UInt8] = []

  /// Creates a pair. Nil, with `errno` set, if that fails.
  ///
  /// - Returns: this end, and the descriptor of the other, which the caller must close.
  static func pair() -> (DecoderSocket, other: Int32)? {
    var sockets: [Int32] = [-1, -1]
    guard csystem_socket_pair(&sockets) == 0 else { return nil }
    // A decoder that does not read its socket must not block the others.
    _ = csystem_set_nonblocking(sockets[0])
    return (DecoderSocket(descriptor: sockets[0]), sockets[1])
  }

  private init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Sends bytes, and descriptors with the first. False if not all of them could be sent.
  func send(_ bytes: [UInt8], _ descriptors: [Int32] = []) -> Bool {
    csystem_send(descriptor, bytes, bytes.count, descriptors, Int32(descriptors.count)) == bytes.count
  }

  /// Ends the connection for both sides.
  func hangUp() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    received = []
  }

  /// Whether more bytes came with the last message.
  var hasMore: Bool { !received.isEmpty }

  /// Returns the next message, without waiting for it.
  func receive() -> Reception {
    if let reply = takeReply() { return reply }
    var piece = [UInt8](repeating: 0, count: CodecMessage.maxLength)
    let length = retryingOnInterrupt { read(descriptor, &piece, piece.count) }
    if length < 0 && errno == EAGAIN { return .nothing }
    guard length > 0 else { return .closed }
    received += piece.prefix(length)
    return takeReply() ?? (received.count > CodecMessage.maxLength ? .invalid : .nothing)
  }

  /// Nil without a whole message.
  private func takeReply() -> Reception? {
    guard let message = CodecMessage(takenFrom: &received) else { return nil }
    return CodecReply(message).map { .reply($0) } ?? .invalid
  }
}

internal import CSystem
internal import ImageCodec
internal import Platform

/// The decoder's end of a socket to the worker.
struct CodecSocket {
  let descriptor: Int32

  /// False if the worker has closed its end.
  func send(_ reply: CodecReply) -> Bool {
    var rest = reply.message.bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { bytes in
        retryingOnInterrupt { csystem_send(descriptor, bytes.baseAddress, bytes.count, nil, 0) }
      }
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }

  /// Waits for bytes and the descriptors that come with them. Nil if the worker has closed its end.
  func receive(atMost count: Int) -> (bytes: ArraySlice<UInt8>, descriptors: [Int32])? {
    var piece = [UInt8](repeating: 0, count: count)
    var descriptors = [Int32](repeating: -1, count: Int(CSYSTEM_MAX_DESCRIPTORS))
    var descriptorCount: Int32 = 0
    let length = retryingOnInterrupt {
      csystem_receive(self.descriptor, &piece, piece.count, &descriptors, &descriptorCount)
    }
    guard length > 0 else { return nil }
    return (piece.prefix(length), Array(descriptors.prefix(Int(descriptorCount))))
  }
}

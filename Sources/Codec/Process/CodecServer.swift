internal import CSystem
internal import ImageCodec
internal import Platform

/// The decoder's side of the socket: announces the formats, then answers requests until the worker closes the socket.
struct CodecServer {
  let socket: Int32

  func run(formats: CodecFormats, sandbox: [String]) {
    guard send(.ready(formats, sandbox: sandbox)) else { return }
    while let (request, descriptors) = receive() {
      guard send(answer(request, descriptors)) else { return }
    }
  }

  private func answer(_ request: CodecRequest?, _ descriptors: [Int32]) -> CodecReply {
    var descriptors = descriptors[...]
    let source = descriptors.popFirst()
    let output = descriptors.popFirst().map { OutputFile(descriptor: $0) }
    let input = source.flatMap { Input(mapping: $0) }
    if let source { close(source) }
    guard let request, let input else { return .failed(.io("the image cannot be read")) }
    do throws(DecodeError) {
      return .done(try Decode(request: request, input: input.screened(request.format), output: output).run())
    } catch {
      return .failed(error)
    }
  }

  private func send(_ reply: CodecReply) -> Bool {
    var rest = reply.message.bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { bytes in
        retryingOnInterrupt { csystem_send(socket, bytes.baseAddress, bytes.count, nil, 0) }
      }
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }

  /// Nil if the worker has closed the socket. The request is nil if it cannot be parsed.
  private func receive() -> (CodecRequest?, [Int32])? {
    var received: [UInt8] = []
    var descriptors: [Int32] = []
    while received.count <= CodecMessage.maxLength {
      var piece = [UInt8](repeating: 0, count: CodecMessage.maxLength)
      var came = [Int32](repeating: -1, count: Int(CSYSTEM_MAX_DESCRIPTORS))
      var count: Int32 = 0
      let length = retryingOnInterrupt { csystem_receive(socket, &piece, piece.count, &came, &count) }
      guard length > 0 else { return nil }
      received += piece.prefix(length)
      descriptors += came.prefix(Int(count))
      if let message = CodecMessage(takenFrom: &received) { return (CodecRequest(message), descriptors) }
    }
    return nil
  }
}

/// The output file: a descriptor from the worker, closed with this object.
final class OutputFile {
  private let descriptor: Int32

  init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  func write(_ bytes: UnsafeRawBufferPointer) throws(DecodeError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = UnsafeRawBufferPointer(rebasing: rest)
      let written = retryingOnInterrupt { writeDescriptor(descriptor, piece.baseAddress, piece.count) }
      guard written > 0 else { throw .io("the decoded image cannot be written: \(String(cString: strerror(errno)))") }
      rest = rest.dropFirst(written)
    }
  }
}

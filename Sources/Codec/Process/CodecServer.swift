internal import ImageCodec
internal import Platform

/// The child process of a decoder: answers requests.
struct CodecServer {
  let socket: CodecSocket

  /// Returns after this number of images, or when the worker closes the socket.
  func run(maxImages: Int) {
    for _ in 0..<maxImages {
      guard let (request, descriptors) = receive(), socket.send(answer(request, descriptors)) else { return }
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

  /// Nil if the worker has closed the socket. The request is nil if it cannot be parsed.
  private func receive() -> (CodecRequest?, [Int32])? {
    var received: [UInt8] = []
    var descriptors: [Int32] = []
    while received.count <= CodecMessage.maxLength {
      guard let piece = socket.receive(atMost: CodecMessage.maxLength) else { return nil }
      received += piece.bytes
      descriptors += piece.descriptors
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

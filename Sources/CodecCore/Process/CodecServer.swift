internal import ImageCodec
internal import Platform

/// The child process of a decoder: answers requests.
struct CodecServer {
  let socket: CodecSocket
  let decode: ImageDecoder

  /// Returns after this number of images, or when the worker closes the socket.
  func run(maxImages: Int) {
    for _ in 0..<maxImages {
      guard let (request, descriptors) = receive(), socket.send(answer(request, descriptors)) else { return }
    }
  }

  /// Decodes a small JPEG of this program's own, so that children need not repeat the initialisation at first use.
  static func warmUp(_ decode: ImageDecoder) {
    let side = 64
    guard let file = try? JPEGWriter.grey(side: side) else { return }
    var transform = Transform()
    (transform.width, transform.format) = (side / 4, .jpeg)
    for output in [CodecRequest.Output.encoded, .pixels] {
      let request = CodecRequest(
        format: .jpeg, transform: transform, output: output, wantsPlaceholder: false, maxPixels: side * side,
        orientation: 1)
      var bytes = request.message.bytes
      guard let parsed = CodecMessage(takenFrom: &bytes).flatMap({ CodecRequest($0) }) else { return }
      _ = decode(parsed, InputFile(file), nil).message.bytes
    }
  }

  private func answer(_ request: CodecRequest?, _ descriptors: [Int32]) -> CodecReply {
    var descriptors = descriptors[...]
    let source = descriptors.popFirst()
    let output = descriptors.popFirst().map { OutputFile(descriptor: $0) }
    let input = source.flatMap { InputFile(mapping: $0) }
    if let source { close(source) }
    guard let request, let input else { return .failed(.io("the image cannot be read")) }
    return decode(request, input, output)
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

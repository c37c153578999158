internal import CSystem
internal import CodecSandbox
package import ImageCodec
internal import Platform

/// Decodes one image. The output file, if there is one, is new and empty.
package typealias ImageDecoder = (CodecRequest, InputFile, OutputFile?) -> CodecReply

/// The parent process of a decoder. It has loaded the libraries, and forks a child for each socket of tasks that the
/// worker sends. It never receives a request, an image or an answer, so nothing of an image reaches the next child.
struct CodecParent {
  let socket: CodecSocket
  /// The number of images that a child decodes if it is not for one.
  let lifetime: Int
  let decode: ImageDecoder

  /// Announces the formats, then starts children until the worker closes the socket.
  func run(formats: CodecFormats, sandbox: [String]) {
    guard csystem_watch_children() == 0, socket.send(.ready(formats, sandbox: sandbox)) else { return }
    while let (command, descriptors) = receive() {
      // A command to kill may come after the child has ended.
      guard let command, command != .kill, let task = descriptors.first else { continue }
      let parent = getpid()
      let child = csystem_fork()
      if child == 0 {
        serve(CodecSocket(descriptor: task), asChildOf: parent, maxImages: command == .startForOne ? 1 : lifetime)
      }
      close(task)
      guard child > 0, socket.send(.started(child)), let status = wait(for: child),
        socket.send(.ended(child, status: status))
      else { return }
    }
  }

  private func receive() -> (DecoderCommand?, [Int32])? {
    guard let (bytes, descriptors) = socket.receive(atMost: 1) else { return nil }
    return (bytes.first.flatMap(DecoderCommand.init(rawValue:)), descriptors)
  }

  /// The status of the child when it has ended. Nil if the worker has closed the socket; the child is killed then.
  private func wait(for child: pid_t) -> Int32? {
    var status: Int32 = 0
    while csystem_wait(child, &status, socket.descriptor) > 0 {
      let command = receive()
      // A child that has ended meanwhile is not reaped yet, so that no other process has its number.
      if command == nil || command?.0 == .kill { kill(child, SIGKILL) }
      if command == nil {
        waitpid(child, nil, 0)
        return nil
      }
    }
    return status
  }

  /// Continues as the child, which has no other descriptor than the socket of its tasks.
  private func serve(_ tasks: CodecSocket, asChildOf parent: pid_t, maxImages: Int) -> Never {
    close(socket.descriptor)
    if Sandbox.closeChild(of: parent) { CodecServer(socket: tasks, decode: decode).run(maxImages: maxImages) }
    _exit(0)
  }
}

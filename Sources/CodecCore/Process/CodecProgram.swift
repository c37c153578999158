internal import CSystem
internal import CodecSandbox
package import ImageCodec
internal import Platform

/// A program that decodes images for the worker, which starts it with a socket as standard input; see `CodecMessage`.
package struct CodecProgram {
  /// Loads libraries, before the sandbox closes, and returns the formats.
  package let start: (DecoderLibraries) -> CodecFormats
  package let decode: ImageDecoder

  package init(start: @escaping (DecoderLibraries) -> CodecFormats, decode: @escaping ImageDecoder) {
    (self.start, self.decode) = (start, decode)
  }

  /// Returns the exit status.
  package func run(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    let arguments = commandLine(count, arguments)
    guard arguments.first == "--serve", arguments.count == 4, let libraries = DecoderLibraries(rawValue: arguments[2])
    else {
      let text = "This program decodes images for imageworker, which starts it itself.\n"
      _ = write(2, text, text.utf8.count)
      return EX_USAGE
    }
    // The worker reads what the dynamic linker writes, and nothing of what the libraries do.
    dup2(STDOUT_FILENO, STDERR_FILENO)
    csystem_keep_freed(8 << 20)
    var formats = CodecFormats()
    let sandbox = Sandbox.close(memoryLimit: Int(arguments[1])) {
      formats = start(libraries)
      CodecServer.warmUp(decode)
    }
    CodecParent(socket: CodecSocket(descriptor: 0), lifetime: Int(arguments[3]) ?? 1, decode: decode)
      .run(formats: formats, sandbox: sandbox)
    return 0
  }
}

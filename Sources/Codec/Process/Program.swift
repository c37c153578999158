internal import CSystem
internal import CodecSandbox
internal import ImageCodec
internal import Platform

/// The program `imageworker-codec`. The worker starts it with a socket as standard input, see `CodecMessage`.
@c(imageworker_codec_main)
public func codecMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  let arguments = commandLine(count, arguments)
  guard arguments.first == "--serve", arguments.count == 4 else {
    let text = "imageworker-codec decodes images for imageworker, which starts it itself.\n"
    _ = write(2, text, text.utf8.count)
    return EX_USAGE
  }
  csystem_keep_freed(8 << 20)
  let libraries = DecoderLibraries(rawValue: arguments[2]) ?? .all
  let sandbox = Sandbox.close(memoryLimit: Int(arguments[1])) { Library.start(libraries) }
  CodecParent(socket: CodecSocket(descriptor: 0), lifetime: Int(arguments[3]) ?? 1)
    .run(formats: Library.formats, sandbox: sandbox)
  return 0
}

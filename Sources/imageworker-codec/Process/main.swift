internal import CSystem
internal import CodecSandbox
internal import ImageCodec
internal import Platform

// The worker starts this with a socket as standard input, see CodecMessage.
if CommandLine.arguments.dropFirst().first == "--serve" {
  csystem_keep_freed(8 << 20)
  let options = CommandLine.arguments.dropFirst(2)
  let libraries = options.dropFirst().first.flatMap(DecoderLibraries.init(rawValue:)) ?? .all
  let sandbox = Sandbox.close(memoryLimit: options.first.flatMap { Int($0) }) { Library.start(libraries) }
  CodecServer(socket: 0).run(formats: Library.formats, sandbox: sandbox)
} else {
  let text = "imageworker-codec decodes images for imageworker, which starts it itself.\n"
  _ = write(2, text, text.utf8.count)
  exit(EX_USAGE)
}

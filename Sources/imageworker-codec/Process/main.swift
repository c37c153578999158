internal import CSystem
internal import ImageCodec
internal import Platform

// The worker starts this with a socket as standard input, see CodecMessage. From the command line only the sandbox
// tests can be run.
switch CommandLine.arguments.dropFirst().first {
case "--serve":
  csystem_keep_freed(8 << 20)
  let options = CommandLine.arguments.dropFirst(2)
  let sandbox = Sandbox.close(
    libraries: options.dropFirst().first.flatMap(DecoderLibraries.init(rawValue:)) ?? .all,
    memoryLimit: options.first.flatMap { Int($0) })
  CodecServer(socket: 0).run(formats: Library.formats, sandbox: sandbox)
case "--try-escape":
  SandboxProbe.tryAll(behind: CommandLine.arguments.dropFirst(2).first)
default:
  let text = "imageworker-codec decodes images for imageworker, which starts it itself.\n"
  _ = write(2, text, text.utf8.count)
  exit(EX_USAGE)
}

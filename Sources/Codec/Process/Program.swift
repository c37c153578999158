internal import CodecCore
internal import ImageCodec

/// The program `imageworker-codec`, which decodes every format.
@c(imageworker_codec_main)
public func codecMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  let program = CodecProgram(
    start: { libraries in
      // Started for plain images only in tests.
      Library.start(libraries == .plain ? .common : libraries)
      return Library.formats
    },
    decode: { request, file, output in
      do throws(DecodeError) {
        let input = try Input(file).screened(request.format)
        return .done(try Decode(request: request, input: input, output: output).run())
      } catch {
        return .failed(error)
      }
    })
  return program.run(count, arguments)
}

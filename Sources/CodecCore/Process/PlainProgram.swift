internal import ImageCodec

/// The program `imageworker-plain`, which decodes what `PlainImage` can.
@c(imageworker_plain_main)
public func plainMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  CodecProgram(start: { _ in PlainImage.formats }, decode: PlainImage.reply(to:_:_:)).run(count, arguments)
}

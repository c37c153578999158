internal import ImageCodec

/// The program `imageworker-jpeg`, which decodes what `PlainJPEG` can.
@c(imageworker_jpeg_main)
public func jpegMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  CodecProgram(start: { _ in PlainJPEG.formats }, decode: PlainJPEG.reply(to:_:_:)).run(count, arguments)
}

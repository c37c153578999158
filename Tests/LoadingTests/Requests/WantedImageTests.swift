import ImageCodec
import Testing

@testable import Loading

@Suite struct `Wanted images` {
  struct Case: Sendable, CustomTestStringConvertible {
    var want: WantedImage
    var header: ImageHeader
    var objection: String?
    var testDescription: String { objection ?? "wanted" }

    init(
      _ size: (Int?, Int?), orientation: Int = 1, frames: Int = 1, _ want: WantedImage, _ objection: String?
    ) {
      self.want = want
      header = ImageHeader(.jpeg, width: size.0, height: size.1, frames: frames, orientation: orientation)
      self.objection = objection
    }
  }

  static let cases = [
    Case((640, 480), WantedImage(), nil),
    Case((640, 480), WantedImage(minWidth: 640, minHeight: 480, maxAspectRatio: 4 / 3.0, formats: [.png, .jpeg]), nil),
    Case((640, 480), WantedImage(maxWidth: 640, maxHeight: 480, maxPixels: 307_200, maxFrames: 1), nil),
    Case((640, 480), WantedImage(minWidth: 641), "the image is 640 pixels wide, and minWidth is 641"),
    Case((640, 480), WantedImage(minHeight: 481), "the image is 480 pixels high, and minHeight is 481"),
    Case((640, 480), WantedImage(maxWidth: 639), "the image is 640 pixels wide, and maxWidth is 639"),
    Case((640, 480), WantedImage(maxHeight: 479), "the image is 480 pixels high, and maxHeight is 479"),
    Case((640, 480), WantedImage(maxPixels: 307_199), "the image is 640 x 480 pixels, and maxPixels is 307199"),
    Case(
      (4_294_967_295, 4_294_967_295), WantedImage(maxPixels: 1 << 53),
      "the image is 4294967295 x 4294967295 pixels, and maxPixels is 9007199254740992"),
    Case((640, 480), frames: 2, WantedImage(maxPixels: 307_200), nil),
    Case((640, 480), frames: 2, WantedImage(maxFrames: 1), "the image has 2 frames, and maxFrames is 1"),
    Case((640, 480), orientation: 6, WantedImage(minWidth: 481), "the image is 480 pixels wide, and minWidth is 481"),
    Case((640, 480), orientation: 8, WantedImage(minHeight: 640), nil),
    Case((100, 301), WantedImage(maxAspectRatio: 3), "the image is 100 x 301 pixels, and maxAspectRatio is 3"),
    Case((300, 100), WantedImage(maxAspectRatio: 3), nil),
    Case((640, 480), WantedImage(formats: [.png, .webp]), "the format is jpeg, and png, webp is wanted"),
    // A size that the header does not have is no reason to refuse the image.
    Case((nil, nil), WantedImage(minWidth: 1000, maxPixels: 1), nil),
    Case((nil, nil), frames: 3, WantedImage(maxFrames: 2), "the image has 3 frames, and maxFrames is 2"),
  ]

  @Test(arguments: cases) func `the objection names the property and the wish`(_ test: Case) {
    let error = test.want.refusal(of: test.header)
    #expect(error?.message == test.objection)
    if let wanted = error?.figures.wanted { #expect(test.objection?.contains(wanted) ?? false || wanted == "formats") }
  }
}

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
      _ size: (Int?, Int?), orientation: Int = 1, minWidth: Int? = nil, minHeight: Int? = nil, ratio: Double? = nil,
      formats: [ImageFormat]? = nil, _ objection: String?
    ) {
      want = WantedImage(minWidth: minWidth, minHeight: minHeight, maxAspectRatio: ratio, formats: formats)
      header = ImageHeader(.jpeg, width: size.0, height: size.1, orientation: orientation)
      self.objection = objection
    }
  }

  static let cases = [
    Case((640, 480), nil),
    Case((640, 480), minWidth: 640, minHeight: 480, ratio: 4 / 3.0, formats: [.png, .jpeg], nil),
    Case((640, 480), minWidth: 641, "the image is 640 pixels wide, and minWidth is 641"),
    Case((640, 480), minHeight: 481, "the image is 480 pixels high, and minHeight is 481"),
    Case((640, 480), orientation: 6, minWidth: 481, "the image is 480 pixels wide, and minWidth is 481"),
    Case((640, 480), orientation: 8, minHeight: 640, nil),
    Case((100, 301), ratio: 3, "the image is 100 x 301 pixels, and maxAspectRatio is 3"),
    Case((300, 100), ratio: 3, nil),
    Case((640, 480), formats: [.png, .webp], "the format is jpeg, and png, webp is wanted"),
    // A size that the header does not have is no reason to refuse the image.
    Case((nil, nil), minWidth: 1000, nil),
  ]

  @Test(arguments: cases) func `the objection names the property and the wish`(_ test: Case) {
    #expect(test.want.refusal(of: test.header)?.message == test.objection)
  }
}

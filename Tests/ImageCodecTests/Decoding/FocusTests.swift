import ImageCodec
import Testing

/// The part of an image that a cover keeps.
struct FocusTests {
  let decoding: Decoding

  init() throws { decoding = try Decoding.shared() }

  /// Grey, with a saturated red and yellow chequerboard of 60 x 60 pixels at the left edge.
  private static func poster(_ width: Int, _ height: Int) -> Pictures {
    Pictures(width: width, height: height, samples: 3) { x, y in
      guard (20..<80).contains(x), (20..<80).contains(y) else { return [128, 128, 128] }
      return (x / 6 + y / 6).isMultiple(of: 2) ? [230, 30, 30] : [230, 220, 40]
    }
  }

  private func cover(_ focus: Transform.Focus, _ change: (inout Transform) -> Void = { _ in }) -> Transform {
    .with {
      ($0.width, $0.height, $0.fit, $0.focus) = (50, 50, .cover, focus)
      change(&$0)
    }
  }

  private func isColorful(_ pixels: Pixels) -> Bool {
    (0..<pixels.width).contains { x in
      (0..<pixels.height).contains { y in (pixels[x, y].max() ?? 0) - (pixels[x, y].min() ?? 0) > 80 }
    }
  }

  @Test(arguments: [Transform.Focus.attention, .entropy])
  func `the striking part of an image is kept`(focus: Transform.Focus) async throws {
    for file in [Self.poster(600, 100).png(), Self.poster(600, 100).tiff()] {
      let kept = try await decoding.pixels(file, cover(focus))
      #expect((kept.width, kept.height) == (50, 50))
      #expect(isColorful(kept))
      #expect(!isColorful(try await decoding.pixels(file, cover(.center))))
    }
  }

  @Test func `the focus is found in the crop, in the upright image and after enlarging`() async throws {
    let png = Self.poster(600, 100).png()
    let rest = Transform.Crop(x: 100, y: 0, width: 500, height: 100)
    #expect(!isColorful(try await decoding.pixels(png, cover(.attention) { $0.crop = rest })))
    let turned = Self.poster(600, 100).png(extraChunks: Pictures.chunk("eXIf", Build.exif(6)))
    #expect(isColorful(try await decoding.pixels(turned, cover(.attention))))
    #expect(!isColorful(try await decoding.pixels(turned, cover(.point(x: 0, y: 1)))))
    let large = cover(.attention) { ($0.width, $0.height, $0.enlarge) = (400, 400, true) }
    let enlarged = try await decoding.pixels(png, large)
    #expect((enlarged.width, enlarged.height) == (400, 400))
    #expect(isColorful(enlarged))
  }

  @Test func `a focal point chooses the part`() async throws {
    let file = Pictures.quarters(400, 100).png()
    for (x, color) in [(0.0, [255, 0, 0]), (1.0, [0, 255, 0])] {
      let part = try await decoding.pixels(file, cover(.point(x: x, y: 0)) { ($0.width, $0.height) = (40, 40) })
      #expect(isNear(part[20, 10], color))
    }
  }

  @Test func `grey, transparent and tiny images have a focus`() async throws {
    let grey = Pictures(width: 90, height: 30, samples: 1) { x, y in [x < 30 ? x * y & 255 : 0] }
    let clear = Pictures(width: 90, height: 30, samples: 4) { x, y in [x, y, 0, x < 30 ? 255 : 0] }
    let tiny = Pictures(width: 3, height: 1, samples: 3) { x, _ in [x * 100, 0, 0] }
    for file in [grey.png(), clear.png(), tiny.png()] {
      for focus in [Transform.Focus.attention, .entropy] {
        let kept = try await decoding.pixels(file, cover(focus) { ($0.width, $0.height) = (1, 1) })
        #expect((kept.width, kept.height) == (1, 1))
      }
    }
  }
}

import Testing

@testable import ImageCodec

struct GeometryTests {
  struct Sizing: Sendable, CustomTestStringConvertible {
    var source: (Int, Int)
    var box: (Int?, Int?)
    var fit = Transform.Fit.inside
    var enlarge = false
    /// The size that the source is resized to, the size of the result, and the offset of the former in the latter.
    var scaled: (Int, Int)
    var result: (Int, Int)
    var at = (0, 0)
    /// The part of the source that is used, if not all of it: x, y, width, height.
    var crop: (Int, Int, Int, Int)?

    var testDescription: String { "\(source) in \(box), \(fit)\(enlarge ? ", enlarged" : "")" }
  }

  static let sizings: [Sizing] = [
    Sizing(source: (400, 300), box: (nil, nil), scaled: (400, 300), result: (400, 300)),
    // With one side, the other follows for every fit.
    Sizing(source: (400, 300), box: (100, nil), scaled: (100, 75), result: (100, 75)),
    Sizing(source: (400, 300), box: (nil, 100), fit: .fill, scaled: (133, 100), result: (133, 100)),
    Sizing(source: (400, 300), box: (nil, 600), scaled: (400, 300), result: (400, 300)),
    Sizing(source: (400, 300), box: (nil, 600), enlarge: true, scaled: (800, 600), result: (800, 600)),
    // Inside.
    Sizing(source: (400, 300), box: (100, 100), scaled: (100, 75), result: (100, 75)),
    Sizing(source: (300, 400), box: (100, 100), scaled: (75, 100), result: (75, 100)),
    Sizing(source: (40, 30), box: (100, 100), scaled: (40, 30), result: (40, 30)),
    Sizing(source: (40, 30), box: (100, 100), enlarge: true, scaled: (100, 75), result: (100, 75)),
    Sizing(source: (3, 2), box: (1, 1), scaled: (1, 1), result: (1, 1)),
    Sizing(source: (10_000, 1), box: (100, 100), scaled: (100, 1), result: (100, 1)),
    Sizing(source: (1600, 1200), box: (256, 256), scaled: (256, 192), result: (256, 192)),
    // Contain: the box is always filled.
    Sizing(source: (400, 300), box: (100, 100), fit: .contain, scaled: (100, 75), result: (100, 100), at: (0, 12)),
    Sizing(source: (40, 30), box: (100, 101), fit: .contain, scaled: (40, 30), result: (100, 101), at: (30, 35)),
    // Cover: the excess is cut on both sides.
    Sizing(source: (400, 300), box: (100, 100), fit: .cover, scaled: (133, 100), result: (100, 100), at: (-16, 0)),
    Sizing(source: (300, 400), box: (100, 100), fit: .cover, scaled: (100, 133), result: (100, 100), at: (0, -16)),
    Sizing(source: (100, 50), box: (80, 200), fit: .cover, scaled: (100, 50), result: (80, 50), at: (-10, 0)),
    // An enlarged image is cut first: the visible part, 40 to 60, plus 3 or 4 pixels on each side.
    Sizing(
      source: (100, 50), box: (80, 200), fit: .cover, enlarge: true, scaled: (108, 200), result: (80, 200),
      at: (-12, 0), crop: (37, 0, 27, 50)
    ),
    Sizing(
      source: (10, 10_000), box: (2000, 2000), fit: .cover, enlarge: true, scaled: (2000, 3400), result: (2000, 2000),
      at: (0, -600), crop: (0, 4992, 10, 17)
    ),
    Sizing(
      source: (40, 30), box: (80, 50), fit: .cover, enlarge: true, scaled: (80, 60), result: (80, 50), at: (0, -5)),
    // Fill.
    Sizing(source: (400, 300), box: (100, 200), fit: .fill, scaled: (100, 200), result: (100, 200)),
    Sizing(source: (50, 300), box: (100, 200), fit: .fill, scaled: (50, 200), result: (50, 200)),
    Sizing(source: (50, 30), box: (100, 200), fit: .fill, enlarge: true, scaled: (100, 200), result: (100, 200)),
  ]

  @Test(arguments: sizings) func `an image is fitted into its box`(sizing: Sizing) throws {
    var transform = Transform()
    (transform.width, transform.height) = sizing.box
    transform.fit = sizing.fit
    transform.enlarge = sizing.enlarge
    let geometry = try transform.geometry(width: sizing.source.0, height: sizing.source.1)
    #expect((geometry.scaledWidth, geometry.scaledHeight) == sizing.scaled)
    #expect((geometry.width, geometry.height) == sizing.result)
    #expect((geometry.x, geometry.y) == sizing.at)
    let crop = sizing.crop ?? (0, 0, sizing.source.0, sizing.source.1)
    #expect(geometry.crop == .init(x: crop.0, y: crop.1, width: crop.2, height: crop.3))
  }

  struct Focusing: Sendable {
    var focus: (Double, Double)
    var box: (Int, Int)
    /// The position of the scaled 400 x 300 source in the result.
    var at: (Int, Int)
  }

  @Test(arguments: [
    Focusing(focus: (0, 0), box: (100, 100), at: (0, 0)),
    Focusing(focus: (0.5, 0.5), box: (100, 100), at: (-16, 0)),
    Focusing(focus: (1, 1), box: (100, 100), at: (-33, 0)),
    Focusing(focus: (0.4, 0.9), box: (100, 100), at: (-3, 0)),
    Focusing(focus: (0.1, 0.7), box: (200, 75), at: (0, -67)),
    Focusing(focus: (0.1, 1), box: (200, 75), at: (0, -75)),
  ])
  func `a focal point is as near to the middle as the image permits`(focusing: Focusing) throws {
    var transform = Transform()
    (transform.width, transform.height, transform.fit) = (focusing.box.0, focusing.box.1, .cover)
    transform.focus = .point(x: focusing.focus.0, y: focusing.focus.1)
    let geometry = try transform.geometry(width: 400, height: 300)
    #expect((geometry.x, geometry.y) == focusing.at)
    #expect((geometry.width, geometry.height) == focusing.box)
  }

  @Test func `of an enlarged image only the part around the focal point is scaled`() throws {
    var transform = Transform()
    (transform.width, transform.height, transform.fit, transform.enlarge) = (2000, 2000, .cover, true)
    for (y, crop, offset) in [(0.0, 0..<14, 0), (0.5, 4992..<5009, -600), (1.0, 9987..<10_000, -600)] {
      transform.focus = .point(x: 0.5, y: y)
      let geometry = try transform.geometry(width: 10, height: 10_000)
      #expect(geometry.crop == .init(x: 0, y: crop.lowerBound, width: 10, height: crop.count))
      #expect((geometry.y, geometry.height) == (offset, 2000))
    }
    transform.focus = .attention
    #expect(try transform.geometry(width: 10, height: 10_000).scaledHeight == 2_000_000)
  }

  @Test func `a crop is applied before the size`() throws {
    var transform = Transform()
    transform.crop = .init(x: 10, y: 20, width: 50, height: 100)
    transform.width = 25
    let geometry = try transform.geometry(width: 400, height: 300)
    #expect(geometry.crop == transform.crop)
    #expect((geometry.width, geometry.height) == (25, 50))
  }

  @Test func `a crop is clipped to the image`() throws {
    var transform = Transform()
    transform.crop = .init(x: -10, y: 290, width: 30, height: 100)
    let geometry = try transform.geometry(width: 400, height: 300)
    #expect(geometry.crop == .init(x: 0, y: 290, width: 20, height: 10))
  }

  @Test(arguments: [(400, 0), (0, 300), (-10, 0), (0, -10)]) func `a crop wholly outside is refused`(at: (Int, Int)) {
    var transform = Transform()
    transform.crop = .init(x: at.0, y: at.1, width: 10, height: 10)
    #expect(throws: GeometryError(width: 400, height: 300)) { try transform.geometry(width: 400, height: 300) }
  }

  @Test(arguments: 1...8) func `orientation is applied before everything else`(orientation: Int) throws {
    let header = ImageHeader(.jpeg, width: 400, height: 300, orientation: orientation)
    var transform = Transform()
    transform.width = 100
    let upright = try #require(try transform.geometry(of: header))
    #expect((upright.width, upright.height) == (orientation < 5 ? (100, 75) : (100, 133)))
    transform.isOriented = false
    let stored = try #require(try transform.geometry(of: header))
    #expect((stored.width, stored.height) == (100, 75))
  }

  /// Checks the rules of each fit for many sizes.
  @Test func `the result is within its box and its parts are consistent for all sizes`() throws {
    var chance = SystemRandomNumberGenerator()
    for _ in 0..<20_000 {
      let (width, height) = (Int.random(in: 1...3000, using: &chance), Int.random(in: 1...3000, using: &chance))
      var transform = Transform()
      let box = (Int.random(in: 1...3000, using: &chance), Int.random(in: 1...3000, using: &chance))
      (transform.width, transform.height) = box
      transform.fit = Transform.Fit.allCases.randomElement(using: &chance)!
      transform.enlarge = .random(using: &chance)
      let geometry = try transform.geometry(width: width, height: height)
      let scaled = (geometry.scaledWidth, geometry.scaledHeight)
      let result = (geometry.width, geometry.height)
      try #require(result.0 >= 1 && result.1 >= 1 && result.0 <= box.0 && result.1 <= box.1)
      if !transform.enlarge { try #require(scaled.0 <= width && scaled.1 <= height) }
      switch transform.fit {
      case .inside: try #require(result == scaled)
      case .contain: try #require(result == box && scaled.0 <= box.0 && scaled.1 <= box.1)
      case .cover:
        try #require(result.0 <= scaled.0 && result.1 <= scaled.1)
        if transform.enlarge { try #require(result == box) }
        let factor = (scaled.0 / geometry.crop.width + 1, scaled.1 / geometry.crop.height + 1)
        let isLarger = scaled.0 > geometry.crop.width || scaled.1 > geometry.crop.height
        if isLarger { try #require(scaled.0 <= result.0 + 10 * factor.0 && scaled.1 <= result.1 + 10 * factor.1) }
        try #require(geometry.x <= 0 && geometry.y <= 0)
        try #require(result.0 - geometry.x <= scaled.0 && result.1 - geometry.y <= scaled.1)
      case .fill: if transform.enlarge { try #require(result == box) }
      }
    }
  }
}

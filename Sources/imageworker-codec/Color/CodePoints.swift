/// Coding-independent code points (ITU-T H.273): numbers by which a PNG or a video declares its colour space. Each
/// number has the meaning that it has in Chromium.
extension Chromaticities {
  /// ColourPrimaries, table 2. Nil for an unassigned number.
  init?(codePoint: Int) {
    switch codePoint {
    case 1: self = .bt709
    case 4: self.init(Point(0.67, 0.33), Point(0.21, 0.71), Point(0.14, 0.08), Point(0.310, 0.316))
    case 5: self.init(Point(0.64, 0.33), Point(0.29, 0.60), Point(0.15, 0.06), Self.d65)
    case 6, 7: self.init(Point(0.630, 0.340), Point(0.310, 0.595), Point(0.155, 0.070), Self.d65)
    case 8: self.init(Point(0.681, 0.319), Point(0.243, 0.692), Point(0.145, 0.049), Point(0.310, 0.316))
    case 9: self = .bt2020
    case 11: self.init(Point(0.680, 0.320), Point(0.265, 0.690), Point(0.150, 0.060), Point(0.314, 0.351))
    case 12: self = .displayP3
    case 22: self.init(Point(0.630, 0.340), Point(0.295, 0.605), Point(0.155, 0.077), Self.d65)
    default: return nil
    }
  }

  private init(_ red: Point, _ green: Point, _ blue: Point, _ white: Point) {
    self.init(red: red, green: green, blue: blue, white: white)
  }
}

extension TransferFunction {
  /// TransferCharacteristics, table 3. Nil for an unassigned number, and for a curve that does not describe a display
  /// with standard dynamic range (PQ, HLG, logarithms).
  init?(codePoint: Int) {
    switch codePoint {
    // The curve of a display (ITU-R BT.1886) and not that of a camera.
    case 1, 6, 11, 14, 15: self = .gamma(2.4)
    case 4: self = .gamma(2.2)
    case 5: self = .gamma(2.8)
    case 8: self = .gamma(1)
    case 13: self = .sRGB
    default: return nil
    }
  }
}

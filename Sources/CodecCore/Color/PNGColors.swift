/// The colours that a PNG declares in chunks before its pixels (PNG, third edition, section 4.3): cICP before iCCP
/// before sRGB before cHRM and gAMA. Choices that the specification leaves open are those of Chromium.
package struct PNGColors {
  private var hasStandardColors = false
  private var codePoints: (primaries: Chromaticities, transfer: Transfer)?
  private var gamma: Double?
  private var chromaticities: Chromaticities?

  package init(of file: UnsafeRawBufferPointer) {
    var hasPalette = false
    for chunk in PNGChunks(file) {
      guard chunk.isWhole, chunk.name != PNGChunks.imageData else { return }
      let content = UnsafeRawBufferPointer(rebasing: file[chunk.content])
      switch (chunk.name, content.count) {
      case (PNGChunks.palette, _): hasPalette = true
      case (PNGChunks.codePoints, 4) where codePoints == nil && !hasPalette: codePoints = Self.codePoints(content)
      // There are four rendering intents.
      case (PNGChunks.standardColors, 1) where content[0] < 4: hasStandardColors = true
      case (PNGChunks.gamma, 4) where gamma == nil:
        let value = content.bigEndian(at: 0)
        if value > 0, value < 1 << 31 { gamma = Double(value) / 100_000 }
      case (PNGChunks.chromaticities, 32) where chromaticities == nil: chromaticities = Chromaticities(content)
      default: break
      }
    }
  }

  /// The effect of the declared colours on the file's own profile.
  package enum Change: Equatable {
    case none, removal
    case replacement(Chromaticities, TransferFunction)
  }

  /// The declared high dynamic range, which comes before any profile.
  package var hdr: HDRColors? {
    guard let codePoints, case .hdr(let transfer) = codePoints.transfer else { return nil }
    return HDRColors(transfer, codePoints.primaries)
  }

  /// - Parameter hasProfile: whether iCCP could be read.
  package func change(hasProfile: Bool) -> Change {
    if let codePoints {
      switch codePoints.transfer {
      case .hdr: return .removal
      case .standard(.sRGB) where codePoints.primaries == .bt709: return .removal
      case .standard(let transfer): return .replacement(codePoints.primaries, transfer)
      }
    }
    guard !hasProfile, !hasStandardColors, let gamma else { return .none }
    let transfer = TransferFunction.gamma(1 / gamma)
    if let chromaticities { return .replacement(chromaticities, transfer) }
    // Most files with only gAMA have the usual 0.45455, which is the default for all files; such a gamma changes
    // nothing.
    return abs(gamma * 2.2 - 1) < 0.05 ? .none : .replacement(.bt709, transfer)
  }

  /// Only full range and RGB are valid in a PNG (section 11.3.2.6).
  private static func codePoints(
    _ content: UnsafeRawBufferPointer
  ) -> (primaries: Chromaticities, transfer: Transfer)? {
    guard content[2] == 0, content[3] == 1, let primaries = Chromaticities(codePoint: Int(content[0])) else {
      return nil
    }
    let number = Int(content[1])
    if let transfer = HDRTransfer(codePoint: number) { return (primaries, .hdr(transfer)) }
    return TransferFunction(codePoint: number).map { (primaries, .standard($0)) }
  }

  private enum Transfer {
    case standard(TransferFunction)
    case hdr(HDRTransfer)
  }
}

extension Chromaticities {
  /// Parses cHRM: white, red, green and blue. Nil if they span no colour space.
  fileprivate init?(_ content: UnsafeRawBufferPointer) {
    func point(_ index: Int) -> Point {
      Point(Double(content.bigEndian(at: 8 * index)) / 100_000, Double(content.bigEndian(at: 8 * index + 4)) / 100_000)
    }
    self.init(red: point(1), green: point(2), blue: point(3), white: point(0))
    guard ICCProfile.display(self, .sRGB) != nil else { return nil }
  }
}

/// Coding-independent code points (ITU-T H.273): numbers by which a PNG or a video declares its colour space. Each
/// number has the meaning that it has in Chromium.
extension Chromaticities {
  /// ColourPrimaries, table 2. Nil for an unassigned number.
  package init?(codePoint: Int) {
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
  package init?(codePoint: Int) {
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

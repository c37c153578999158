internal import Platform

/// The transfer function of pictures with high dynamic range (ITU-R BT.2100).
package enum HDRTransfer: Hashable, Sendable {
  case pq, hlg

  /// TransferCharacteristics of ITU-T H.273, table 3. Nil for other numbers.
  package init?(codePoint: Int) {
    switch codePoint {
    case 16: self = .pq
    case 18: self = .hlg
    default: return nil
    }
  }
}

/// The transfer function and the primaries of a picture with high dynamic range.
package struct HDRColors: Hashable, Sendable {
  package let transfer: HDRTransfer
  package let primaries: Chromaticities

  package init(_ transfer: HDRTransfer, _ primaries: Chromaticities) {
    (self.transfer, self.primaries) = (transfer, primaries)
  }

  /// By the numbers of ITU-T H.273. Nil if they are of no such picture.
  package init?(primaries: Int, transfer: Int) {
    guard let transfer = HDRTransfer(codePoint: transfer), let primaries = Chromaticities(codePoint: primaries) else {
      return nil
    }
    self.init(transfer, primaries)
  }
}

/// Maps the pixels of a PQ or HLG picture to sRGB, as Chromium does for a screen with standard dynamic range: by the
/// reference white tone mapping operator of SMPTE ST 2094-50, for a picture of at most 1,000 cd/m2 whose white has 203
/// (ITU-R BT.2408).
package final class ToneMap {
  /// Linear light of each stored value, of which the highest bits count; white is 1.
  private let light: [Float]
  private let transfer: HDRTransfer
  private let toBT2020: Matrix?
  private let toSRGB: Matrix

  private typealias Color = SIMD3<Float>

  private struct Matrix {
    let rows: (Color, Color, Color)

    /// Nil if the primaries span no colour space.
    init?(from: Chromaticities, to: Chromaticities) {
      guard let source = Self.toD50(from), let target = Self.toD50(to)?.inverse else { return nil }
      let rows = (target * source).rows.map { Color(Float($0[0]), Float($0[1]), Float($0[2])) }
      self.rows = (rows[0], rows[1], rows[2])
    }

    private static func toD50(_ chromaticities: Chromaticities) -> Matrix3? {
      guard let matrix = Matrix3.toXYZ(of: chromaticities),
        let adaptation = Matrix3.adaptation(from: chromaticities.white)
      else { return nil }
      return adaptation * matrix
    }

    static func * (matrix: Matrix, color: Color) -> Color {
      Color((matrix.rows.0 * color).sum(), (matrix.rows.1 * color).sum(), (matrix.rows.2 * color).sum())
    }
  }

  private static let bits = 12
  private static let (peak, white): (Double, Double) = (1000, 203)

  /// Nil if the primaries span no colour space.
  package init?(_ colors: HDRColors) {
    let (transfer, primaries) = (colors.transfer, colors.primaries)
    guard let toBT2020 = Matrix(from: primaries, to: .bt2020), let toSRGB = Matrix(from: .bt2020, to: .bt709) else {
      return nil
    }
    self.transfer = transfer
    self.toBT2020 = primaries == .bt2020 ? nil : toBT2020
    self.toSRGB = toSRGB
    let most = Double(1 << Self.bits - 1)
    light = (0..<(1 << Self.bits)).map { value in
      let signal = Double(value) / most
      return Float(transfer == .pq ? Self.pq(signal) / Self.white : Self.hlg(signal))
    }
  }

  /// Luminance in cd/m2 (ITU-R BT.2100-2, table 4).
  private static func pq(_ signal: Double) -> Double {
    let power = pow(signal, 4096.0 / 2523 / 128)
    let ratio = max(power - 3424.0 / 4096, 0) / (2413.0 / 128 - 2392.0 / 128 * power)
    return 10_000 * pow(ratio, 16384.0 / 2610)
  }

  /// Light of the scene, at most 1 (table 5).
  private static func hlg(_ signal: Double) -> Double {
    let a = 0.17883277
    let b = 1 - 4 * a
    let c = 0.5 - a * log(4 * a)
    return signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12
  }

  /// Maps R G B, or R G B and alpha, of 16 bits each to bytes. Grey is one sample, or two with alpha.
  package func convert(
    _ samples: UnsafePointer<UInt16>, count: Int, bands: Int, into bytes: UnsafeMutablePointer<UInt8>
  ) {
    let isGrey = bands <= 2
    for pixel in 0..<count {
      let place = pixel * bands
      let (red, green, blue) = (samples[place], samples[place + (isGrey ? 0 : 1)], samples[place + (isGrey ? 0 : 2)])
      let color = mapped(Color(light(red), light(green), light(blue)), isGrey: isGrey)
      bytes[place] = Self.encoded(color.x)
      if !isGrey { (bytes[place + 1], bytes[place + 2]) = (Self.encoded(color.y), Self.encoded(color.z)) }
      if bands.isMultiple(of: 2) {
        bytes[place + bands - 1] = UInt8((UInt32(samples[place + bands - 1]) * 255 + 32_767) / 65_535)
      }
    }
  }

  private func light(_ sample: UInt16) -> Float { light[Int(sample >> (16 - UInt16(Self.bits)))] }

  private func mapped(_ stored: Color, isGrey: Bool) -> Color {
    var color = isGrey ? stored : toBT2020.map { $0 * stored } ?? stored
    if transfer == .hlg {
      // The display of the reference: a peak of 1,000 cd/m2 and a gamma of 1.2 (table 5).
      let luminance = max((color * Color(0.2627, 0.6780, 0.0593)).sum(), 0)
      color *= powf(luminance, 0.2) * Float(Self.peak / Self.white)
    }
    let greatest = color.max()
    guard greatest > 0 else { return .zero }
    color *= Self.mapped(greatest) / greatest
    return isGrey ? color : toSRGB * color
  }

  /// The curve: half of the light up to white, then a quadratic Bezier curve up to the peak (SMPTE ST 2094-50).
  private static func mapped(_ light: Float) -> Float {
    guard light > 1 else { return light / 2 }
    let headroom = Float(peak / white)
    // The points of the curve: (1, 0.5), (1.65, 0.825), (headroom, 1).
    let (a, b) = (headroom - 2.3, Float(1.3))
    let along = min(1, (-b + (b * b + 4 * a * (light - 1)).squareRoot()) / (2 * a))
    return 0.5 + along * (0.65 - 0.15 * along)
  }

  private static let steps = 1 << 14

  /// The byte of sRGB for linear light.
  private static let bytes: [UInt8] = (0...steps).map { step in
    let light = Double(step) / Double(steps)
    let signal = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
    return UInt8((255 * signal).rounded())
  }

  private static func encoded(_ light: Float) -> UInt8 { bytes[Int(min(1, max(0, light)) * Float(steps) + 0.5)] }
}

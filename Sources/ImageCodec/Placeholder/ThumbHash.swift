internal import Platform

/// A very small version of an image in about 25 bytes: the lowest frequencies of its lightness, colours and alpha.
///
/// The format is that of https://github.com/evanw/thumbhash. The bytes equal the reference's if each side has at least
/// 7 pixels. With fewer pixels the reference samples each wave only at the middle of a pixel, which adds waves that are
/// not in the image.
package struct ThumbHash {
  private let width: Int
  private let height: Int
  private var lightness: [Double] = []
  private var yellowToBlue: [Double] = []
  private var redToGreen: [Double] = []
  private var alpha: [Double] = []
  private var mean: (red: Double, green: Double, blue: Double) = (0, 0, 0)
  private var hasAlpha = false

  /// The largest side of an image to encode; a larger image would have the same hash.
  package static let maxSide = 100

  /// The size in which an image is encoded.
  package static func size(width: Int, height: Int) throws -> (width: Int, height: Int) {
    let geometry = try Transform.thumbHash.geometry(width: width, height: height)
    return (geometry.scaledWidth, geometry.scaledHeight)
  }

  /// - Parameter pixels: R G B A with straight alpha, 8 bits each; there are `width * height` pixels.
  package init(pixels: [UInt8], width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    let count = width * height
    var weight = 0.0
    for index in 0..<count {
      let alpha = Double(pixels[4 * index + 3]) / 255
      mean.red += alpha / 255 * Double(pixels[4 * index])
      mean.green += alpha / 255 * Double(pixels[4 * index + 1])
      mean.blue += alpha / 255 * Double(pixels[4 * index + 2])
      weight += alpha
    }
    if weight > 0 { mean = (mean.red / weight, mean.green / weight, mean.blue / weight) }
    hasAlpha = weight < Double(count)
    for index in 0..<count {
      // Blended onto the mean colour, so that transparent pixels change nothing.
      let alpha = Double(pixels[4 * index + 3]) / 255
      let red = mean.red * (1 - alpha) + alpha / 255 * Double(pixels[4 * index])
      let green = mean.green * (1 - alpha) + alpha / 255 * Double(pixels[4 * index + 1])
      let blue = mean.blue * (1 - alpha) + alpha / 255 * Double(pixels[4 * index + 2])
      lightness.append((red + green + blue) / 3)
      yellowToBlue.append((red + green) / 2 - blue)
      redToGreen.append(red - green)
      self.alpha.append(alpha)
    }
  }

  /// The mean colour of the opaque parts, as 0xRRGGBB.
  package var color: UInt32 {
    [mean.red, mean.green, mean.blue].reduce(0) { $0 << 8 | UInt32(rounded($1 * 255)) }
  }

  package var bytes: [UInt8] {
    let limit = hasAlpha ? 5 : Self.maxWaves
    let longer = Double(max(width, height))
    let across = max(1, rounded(Double(limit * width) / longer))
    let down = max(1, rounded(Double(limit * height) / longer))
    let isLandscape = width > height
    let l = frequencies(of: lightness, across: max(3, across), down: max(3, down))
    let p = frequencies(of: yellowToBlue, across: 3, down: 3)
    let q = frequencies(of: redToGreen, across: 3, down: 3)

    var constants = rounded(63 * l.constant)
    constants |= rounded(31.5 + 31.5 * p.constant) << 6
    constants |= rounded(31.5 + 31.5 * q.constant) << 12
    constants |= rounded(31 * l.scale) << 18
    constants |= (hasAlpha ? 1 : 0) << 23
    var scales = isLandscape ? down : across
    scales |= rounded(63 * p.scale) << 3
    scales |= rounded(63 * q.scale) << 9
    scales |= (isLandscape ? 1 : 0) << 15
    var nibbles = [0, 4, 8, 12, 16, 20].map { constants >> $0 & 15 } + [0, 4, 8, 12].map { scales >> $0 & 15 }
    var varying = l.varying + p.varying + q.varying
    if hasAlpha {
      let a = frequencies(of: alpha, across: 5, down: 5)
      nibbles += [rounded(15 * a.constant), rounded(15 * a.scale)]
      varying += a.varying
    }
    nibbles += varying.map { rounded(15 * $0) }
    if !nibbles.count.isMultiple(of: 2) { nibbles.append(0) }
    return stride(from: 0, to: nibbles.count, by: 2).map { UInt8(nibbles[$0] & 15 | (nibbles[$0 + 1] & 15) << 4) }
  }

  private struct Frequencies {
    var constant = 0.0
    /// The coefficients except the constant one; in 0...1 after division by `scale`, the largest of them.
    var varying: [Double] = []
    var scale = 0.0
  }

  /// The discrete cosine transform, limited to the upper left triangle of frequencies.
  private func frequencies(of channel: [Double], across: Int, down: Int) -> Frequencies {
    let horizontal = (0..<across).map { Self.wave($0, over: width) }
    let vertical = (0..<down).map { Self.wave($0, over: height) }
    var result = Frequencies()
    for y in 0..<down {
      var x = 0
      while x * down < across * (down - y) {
        var sum = 0.0
        for row in 0..<height {
          var rowSum = 0.0
          for column in 0..<width { rowSum += channel[row * width + column] * horizontal[x][column] }
          sum += rowSum * vertical[y][row]
        }
        sum /= Double(width * height)
        if x == 0, y == 0 {
          result.constant = sum
        } else {
          result.varying.append(sum)
          result.scale = max(result.scale, abs(sum))
        }
        x += 1
      }
    }
    if result.scale > 0 { result.varying = result.varying.map { 0.5 + 0.5 / result.scale * $0 } }
    return result
  }

  /// A cosine of `halfPeriods` half periods over `count` pixels: its value at the middle of each pixel. If there are
  /// fewer pixels than the waves need, it is the mean of several samples in each pixel.
  private static func wave(_ halfPeriods: Int, over count: Int) -> [Double] {
    let parts = (maxWaves + count - 1) / count
    let step = Double.pi / Double(count * parts) * Double(halfPeriods)
    let samples = (0..<(count * parts)).map { cos(step * (Double($0) + 0.5)) }
    if parts == 1 { return samples }
    return (0..<count).map { samples[($0 * parts)..<(($0 + 1) * parts)].reduce(0, +) / Double(parts) }
  }

  private static let maxWaves = 7

  private func rounded(_ number: Double) -> Int { Int((number + 0.5).rounded(.down)) }
}

extension Transform {
  /// The size in which an image is encoded as a ThumbHash.
  fileprivate static var thumbHash: Transform {
    var transform = Transform()
    (transform.width, transform.height) = (ThumbHash.maxSide, ThumbHash.maxSide)
    return transform
  }

  /// The transform whose result has the same placeholder as that of this one, and is often smaller.
  package var forPlaceholder: Transform {
    guard width == nil, height == nil, blur == 0, cornerRadius == 0 else { return self }
    var transform = self
    (transform.width, transform.height) = (ThumbHash.maxSide, ThumbHash.maxSide)
    return transform
  }
}

extension Placeholder {
  /// - Parameters:
  ///   - bands: 1 for grey and 3 for R G B, with one more for alpha.
  ///   - forEachRow: passes the rows of a picture of the size that `ThumbHash` says.
  package init(
    width: Int, height: Int, bands: Int, _ forEachRow: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
  ) rethrows {
    var pixels: [UInt8] = []
    try forEachRow { row in
      for start in stride(from: 0, to: row.count, by: bands) {
        let (green, blue) = bands >= 3 ? (start + 1, start + 2) : (start, start)
        pixels += [row[start], row[green], row[blue]]
        pixels.append(bands.isMultiple(of: 2) ? row[start + bands - 1] : 255)
      }
    }
    let hash = ThumbHash(pixels: pixels, width: width, height: height)
    self.init(thumbHash: hash.bytes, color: hash.color)
  }
}

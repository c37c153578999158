import Foundation
import ImageCodec

/// Builds image files from pixels without any image library: PNG, TIFF and GIF. Files in other formats are made from
/// these by the decoder.
struct Pictures {
  var width: Int
  var height: Int
  /// The samples of a pixel: grey, grey and alpha, R G B, R G B A (or C M Y K in a TIFF).
  var samples: Int
  var depth = 8
  /// The values of the samples, in the range of `depth`.
  var pixel: (_ x: Int, _ y: Int) -> [Int]

  /// One colour in each quadrant: red, green, blue and white.
  static func quarters(_ width: Int, _ height: Int) -> Pictures {
    Pictures(width: width, height: height, samples: 3) { x, y in
      switch (x < width / 2, y < height / 2) {
      case (true, true): [255, 0, 0]
      case (false, true): [0, 255, 0]
      case (true, false): [0, 0, 255]
      case (false, false): [255, 255, 255]
      }
    }
  }

  /// Content at every frequency.
  static func waves(_ width: Int, _ height: Int) -> Pictures {
    Pictures(width: width, height: height, samples: 3) { x, y in
      [(x * x / 7 + y) & 255, (x * 3 + y * y / 11) & 255, (x + y * 2) & 255]
    }
  }

  /// Smooth, as most areas of a photograph are.
  static func hills(_ width: Int, _ height: Int) -> Pictures {
    Pictures(width: width, height: height, samples: 3) { x, y in
      let (x, y) = (Double(x), Double(y))
      let fine = 25 * sin((x + 2 * y) / 7) + 15 * sin(x * y / 20_000)
      return [128 + 60 * sin(x / 37), 120 + 70 * cos(y / 23), 100 + 50 * sin((x - y) / 61)].map { Int($0 + fine) & 255 }
    }
  }

  private func rows(bigEndian: Bool) -> [[UInt8]] {
    (0..<height).map { y in
      var row: [UInt8] = []
      var (bits, count) = (0, 0)
      for x in 0..<width {
        for sample in pixel(x, y) {
          if depth == 8 {
            row.append(UInt8(sample))
            continue
          }
          if depth == 32 {
            row += bigEndian ? Build.big32(sample) : Build.little32(sample)
            continue
          }
          if depth == 16 {
            row += bigEndian ? Build.big16(sample) : Build.little16(sample)
            continue
          }
          (bits, count) = (bits << depth | sample, count + depth)
          if count == 8 {
            row.append(UInt8(bits))
            (bits, count) = (0, 0)
          }
        }
      }
      if count > 0 { row.append(UInt8(bits << (8 - count))) }
      return row
    }
  }

  // MARK: PNG

  /// - Parameter palette: R G B triples. With a palette, pixels have one sample, an index.
  func png(palette: [UInt8]? = nil, extraChunks: [UInt8] = []) -> [UInt8] {
    let kind: UInt8 = palette != nil ? 3 : [1: 0, 2: 4, 3: 2, 4: 6][samples] ?? 0
    var header: [UInt8] = Build.big32(width) + Build.big32(height)
    header += [UInt8(depth), kind, 0, 0, 0]
    var content: [UInt8] = []
    for row in rows(bigEndian: true) { content += [0] + row }
    var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    file += Self.chunk("IHDR", header) + extraChunks
    if let palette { file += Self.chunk("PLTE", palette) }
    return file + Self.chunk("IDAT", Self.deflated(content)) + Self.chunk("IEND", [])
  }

  static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let named = Build.text(name) + content
    return Build.big32(content.count) + named + Build.big32(Int(checksum(named)))
  }

  /// Zlib data with stored blocks only.
  static func deflated(_ content: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x78, 0x01]
    var start = 0
    repeat {
      let length = min(65535, content.count - start)
      let isLast = start + length == content.count
      result += [isLast ? 1 : 0] + Build.little16(length) + Build.little16(length ^ 0xFFFF)
      result += content[start..<(start + length)]
      start += length
    } while start < content.count
    var (a, b) = (1, 0)
    for byte in content {
      a = (a + Int(byte)) % 65521
      b = (b + a) % 65521
    }
    return result + Build.big16(b) + Build.big16(a)
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
  }

  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(0xFFFF_FFFF) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
  }

  // MARK: TIFF

  /// Uncompressed, in one strip. Four samples are C M Y K.
  ///
  /// - Parameters:
  ///   - photometric: the meaning of the first samples, as in TIFF 6.0; the rest are extra samples.
  ///   - sampleFormat: 1 for unsigned, 2 for signed.
  ///   - extraSamples: the meaning of the extra samples, if the file declares it.
  func tiff(photometric: Int? = nil, sampleFormat: Int = 1, extraSamples: [Int] = []) -> [UInt8] {
    let content = rows(bigEndian: false).flatMap { $0 }
    let photometric = photometric ?? [1: 1, 3: 2, 4: 5][samples] ?? 1
    let start = 8 + 2 + (extraSamples.isEmpty ? 11 : 12) * 12 + 4
    let depths = start + content.count
    let formats = depths + 2 * samples
    let extras = formats + 2 * samples
    func perSample(_ value: Int, at place: Int) -> Int { samples <= 2 ? value << 16 | value : place }
    var entries: [(tag: Int, type: Int, count: Int, value: Int)] = [
      (256, 4, 1, width), (257, 4, 1, height), (258, 3, samples, perSample(depth, at: depths)), (259, 3, 1, 1),
      (262, 3, 1, photometric), (273, 4, 1, start), (277, 3, 1, samples), (278, 4, 1, height),
      (279, 4, 1, content.count),
      (284, 3, 1, 1), (339, 3, samples, perSample(sampleFormat, at: formats)),
    ]
    if !extraSamples.isEmpty {
      let inline = extraSamples[0] | (extraSamples.count > 1 ? extraSamples[1] << 16 : 0)
      entries.insert((338, 3, extraSamples.count, extraSamples.count <= 2 ? inline : extras), at: entries.count - 1)
    }
    var file = Build.text("II") + Build.little16(42) + Build.little32(8) + Build.little16(entries.count)
    for entry in entries {
      file += Build.little16(entry.tag) + Build.little16(entry.type) + Build.little32(entry.count)
      file += Build.little32(entry.value)
    }
    file += Build.little32(0) + content
    for value in [depth, sampleFormat] { for _ in 0..<samples { file += Build.little16(value) } }
    for kind in extraSamples { file += Build.little16(kind) }
    return file
  }

  // MARK: GIF

  /// An animation of frames in one colour each. The first delay is `delay` hundredths of a second, and each delay is
  /// `step` longer than the one before. The frames are at `x` and `y` of the screen, or each at its own position. The
  /// screen has their size by default.
  ///
  /// - Parameters:
  ///   - disposal: the disposal of a frame: 1 keeps it, 2 clears its area.
  ///   - isTransparent: whether a colour that no frame uses is declared transparent.
  static func gif(
    _ width: Int, _ height: Int, colors: [(UInt8, UInt8, UInt8)], delay: Int = 10, step: Int = 0, loops: Int = 0,
    x: Int = 0, y: Int = 0, screen: (width: Int, height: Int)? = nil,
    places: [(x: Int, y: Int, width: Int, height: Int)]? = nil, disposal: UInt8 = 1, isTransparent: Bool = false
  ) -> [UInt8] {
    let (screenWidth, screenHeight) = screen ?? (width, height)
    var file = Build.text("GIF89a") + Build.little16(screenWidth) + Build.little16(screenHeight) + [0xF6, 0, 0]
    var table = colors.flatMap { [$0.0, $0.1, $0.2] }
    table += [UInt8](repeating: 0, count: 3 * 128 - table.count)
    file += table + [0x21, 0xFF, 11] + Build.text("NETSCAPE2.0") + [3, 1] + Build.little16(loops) + [0]
    for index in colors.indices {
      let place = places?[index] ?? (x: x, y: y, width: width, height: height)
      file += [0x21, 0xF9, 4, disposal << 2 | (isTransparent ? 1 : 0)] + Build.little16(delay + step * index)
      file += [isTransparent ? 127 : 0, 0]
      file += [0x2C] + [place.x, place.y, place.width, place.height].flatMap { Build.little16($0) } + [0, 7]
      file += blocks(uncompressed(UInt8(index), count: place.width * place.height))
    }
    return file + [0x3B]
  }

  /// LZW codes of eight bits: a reset comes before they would become longer.
  private static func uncompressed(_ index: UInt8, count: Int) -> [UInt8] {
    var codes: [UInt8] = []
    for pixel in 0..<count {
      if pixel % 100 == 0 { codes.append(128) }
      codes.append(index)
    }
    return codes + [129]
  }

  private static func blocks(_ content: [UInt8]) -> [UInt8] {
    stride(from: 0, to: content.count, by: 255).flatMap { start in
      let block = content[start..<min(start + 255, content.count)]
      return [UInt8(block.count)] + block
    } + [0]
  }
}

/// A JPEG whose blocks of 8 x 8 samples each have one value, in any sampling (ITU-T T.81), so that its pixels are known
/// without a decoder.
struct BlockJPEG {
  struct Component {
    /// The sampling factor, 1 to 4. More samples are closer together.
    var (across, down): (Int, Int)
    /// The value at a position in the image, 0 to 255.
    var value: (_ x: Int, _ y: Int) -> Int
  }

  var width: Int
  var height: Int
  var components: [Component]
  /// Whether the components are stored as RGB, which libjpeg recognises by their names.
  var isRGB = false
  /// MCUs between restart markers; 0 for no markers.
  var restartInterval = 0
  /// Whether each component has a separate scan. All must have one sample for each pixel then.
  var hasScanForEach = false

  private var most: (across: Int, down: Int) {
    (components.map(\.across).max() ?? 1, components.map(\.down).max() ?? 1)
  }

  private func value(_ component: Component, _ blockX: Int, _ blockY: Int) -> Int {
    let (stepX, stepY) = (8 * most.across / component.across, 8 * most.down / component.down)
    return component.value(blockX * stepX + stepX / 2, blockY * stepY + stepY / 2)
  }

  /// The samples of a pixel, which are the values of the blocks that contain it.
  func samples(_ x: Int, _ y: Int) -> [Int] {
    components.map { value($0, x * $0.across / (8 * most.across), y * $0.down / (8 * most.down)) }
  }

  /// The conversion of JFIF 1.02, page 3.
  func rgb(_ x: Int, _ y: Int) -> [Int] {
    let samples = samples(x, y).map(Double.init)
    guard samples.count == 3, !isRGB else { return samples.map { Int($0) } }
    let (luma, blue, red) = (samples[0], samples[1] - 128, samples[2] - 128)
    return [luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue].map { Int($0.rounded()) }
  }

  var picture: Pictures { Pictures(width: width, height: height, samples: components.count, pixel: rgb) }

  var file: [UInt8] {
    let names: [UInt8] = isRGB ? [82, 71, 66] : [1, 2, 3, 4]
    var frame: [UInt8] = []
    for (name, component) in zip(names, components) {
      frame += [name, UInt8(component.across << 4 | component.down), 0]
    }
    let count = UInt8(components.count)
    // A code of 4 bits for each length of a difference, and one of 1 bit for the end of a block.
    let codes = [0x00] + lengths(4, 10) + Array(0...9) + [0x10] + lengths(1, 1) + [0]
    var file: [UInt8] = [0xFF, 0xD8] + Build.segment(0xDB, [0] + [UInt8](repeating: 8, count: 64))
    file += Build.segment(0xC0, [8] + Build.big16(height) + Build.big16(width) + [count] + frame)
    file += Build.segment(0xC4, codes)
    if restartInterval > 0 { file += Build.segment(0xDD, Build.big16(restartInterval)) }
    let all = Array(components.indices)
    for scan in hasScanForEach ? all.map({ [$0] }) : [all] {
      file += Build.segment(0xDA, [UInt8(scan.count)] + scan.flatMap { [names[$0], 0] } + [0, 63, 0]) + data(of: scan)
    }
    return file + [0xFF, 0xD9]
  }

  private func lengths(_ length: Int, _ count: UInt8) -> [UInt8] { (1...16).map { $0 == length ? count : 0 } }

  private func data(of scan: [Int]) -> [UInt8] {
    var (bytes, bits): ([UInt8], Bits) = ([], Bits())
    var last = [Int](repeating: 128, count: components.count)
    var count = 0
    let unit = (across: 8 * most.across, down: 8 * most.down)
    for unitY in 0..<((height + unit.down - 1) / unit.down) {
      for unitX in 0..<((width + unit.across - 1) / unit.across) {
        if restartInterval > 0, count > 0, count.isMultiple(of: restartInterval) {
          bytes += bits.bytes + [0xFF, 0xD0 + UInt8((count / restartInterval - 1) % 8)]
          (bits, last) = (Bits(), last.map { _ in 128 })
        }
        count += 1
        for index in scan {
          let component = components[index]
          for blockY in 0..<component.down {
            for blockX in 0..<component.across {
              let value = value(component, unitX * component.across + blockX, unitY * component.down + blockY)
              bits.append(difference: value - last[index])
              last[index] = value
            }
          }
        }
      }
    }
    return bytes + bits.bytes
  }

  private struct Bits {
    private var text: [Bool] = []

    mutating func append(difference: Int) {
      let length = Int.bitWidth - abs(difference).leadingZeroBitCount
      append(length, 4)
      append(difference < 0 ? difference + (1 << length) - 1 : difference, length)
      append(0, 1)
    }

    private mutating func append(_ number: Int, _ count: Int) {
      for bit in (0..<count).reversed() { text.append(number >> bit & 1 == 1) }
    }

    var bytes: [UInt8] {
      stride(from: 0, to: text.count, by: 8).flatMap { start -> [UInt8] in
        let byte = (0..<8).reduce(0) { $0 << 1 | (start + $1 < text.count && !text[start + $1] ? 0 : 1) }
        return byte == 0xFF ? [0xFF, 0x00] : [UInt8(byte)]
      }
    }
  }
}

internal import Platform

/// The pixels of an image that is decoded as a whole: 8-bit R G B A with straight alpha, or R G B if all pixels are
/// opaque.
final class Raster {
  let width: Int
  let height: Int
  private(set) var channels: Int
  private let memory: UnsafeMutableRawPointer
  /// The ICC profile of the pixels.
  var profile: [UInt8]?
  /// The timing of frames that are stacked from the top; nil for a still image.
  var animation: Animation?

  struct Animation {
    /// The delay of each frame in milliseconds.
    var delays: [Int]
    /// The number of times that the animation plays; 0 means forever.
    var plays: Int
  }

  /// Creates transparent black pixels.
  ///
  /// - Parameters: must be more than 0; width x height must be within the pixel limit.
  init(width: Int, height: Int, channels: Int = 4) throws(LibraryError) {
    guard let memory = calloc(width * height, channels) else { throw LibraryError("out of memory") }
    (self.width, self.height, self.channels, self.memory) = (width, height, channels, memory)
  }

  deinit { free(memory) }

  /// The first byte of the first pixel.
  var base: UnsafeMutableRawPointer { memory }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: width * height * channels) }

  /// One number for each pixel, red in its lowest byte. Only valid with four channels.
  var pixels: UnsafeMutableBufferPointer<UInt32> {
    UnsafeMutableBufferPointer(start: memory.assumingMemoryBound(to: UInt32.self), count: width * height)
  }

  func row(_ y: Int) -> UnsafeMutableBufferPointer<UInt32> {
    UnsafeMutableBufferPointer(rebasing: pixels[(y * width)..<((y + 1) * width)])
  }

  /// Removes the alpha channel if all pixels are opaque.
  func compact() {
    guard isOpaque else { return }
    removeAlpha()
    channels = 3
  }

  private var isOpaque: Bool {
    // One row at a time, because a loop that may end at each pixel is not vectorised.
    channels == 4 && (0..<height).allSatisfy { row($0).reduce(.max, &) >> 24 == 255 }
  }

  private func removeAlpha() {
    let words = memory.assumingMemoryBound(to: UInt32.self)
    let count = width * height
    for four in 0..<(count / 4) {
      let place = 4 * four
      let (first, second, third, fourth) = (words[place], words[place + 1], words[place + 2], words[place + 3])
      words[3 * four] = first & 0xFF_FFFF | second << 24
      words[3 * four + 1] = second >> 8 & 0xFFFF | third << 16
      words[3 * four + 2] = third >> 16 & 0xFF | fourth << 8
    }
    let samples = memory.assumingMemoryBound(to: UInt8.self)
    for pixel in (count / 4 * 4)..<count {
      for channel in 0..<3 { samples[3 * pixel + channel] = samples[4 * pixel + channel] }
    }
  }

  static func pixel(_ red: UInt8, _ green: UInt8, _ blue: UInt8, _ alpha: UInt8 = 255) -> UInt32 {
    UInt32(red) | UInt32(green) << 8 | UInt32(blue) << 16 | UInt32(alpha) << 24
  }
}

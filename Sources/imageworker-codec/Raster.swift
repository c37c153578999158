#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The pixels of an image that is decoded as a whole: R G B A of 8 bits with straight alpha, or R G B if all are
/// opaque.
final class Raster {
  let width: Int
  let height: Int
  private(set) var channels: Int
  private let memory: UnsafeMutableRawPointer
  /// An ICC profile that belongs to the pixels.
  var profile: [UInt8]?
  /// The timing of frames that are stacked, the first at the top; nil for a still picture.
  var animation: Animation?

  struct Animation {
    /// The delay of each frame in milliseconds.
    var delays: [Int]
    /// The number of times that all frames are shown; 0 is without end.
    var plays: Int
  }

  /// All pixels are transparent black.
  ///
  /// - Parameters: more than 0; their product is within the limit of pixels.
  init(width: Int, height: Int, channels: Int = 4) throws(LibraryError) {
    guard let memory = calloc(width * height, channels) else { throw LibraryError("out of memory") }
    (self.width, self.height, self.channels, self.memory) = (width, height, channels, memory)
  }

  deinit { free(memory) }

  /// The first byte of the first pixel.
  var base: UnsafeMutableRawPointer { memory }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: width * height * channels) }

  /// One number for each pixel, red in its lowest byte, while there are four channels.
  var pixels: UnsafeMutableBufferPointer<UInt32> {
    UnsafeMutableBufferPointer(start: memory.assumingMemoryBound(to: UInt32.self), count: width * height)
  }

  func row(_ y: Int) -> UnsafeMutableBufferPointer<UInt32> {
    UnsafeMutableBufferPointer(rebasing: pixels[(y * width)..<((y + 1) * width)])
  }

  /// Leaves the alpha away where all pixels are opaque.
  func compact() {
    guard channels == 4, pixels.allSatisfy({ $0 >> 24 == 255 }) else { return }
    let samples = memory.assumingMemoryBound(to: UInt8.self)
    for pixel in 0..<(width * height) {
      samples[3 * pixel] = samples[4 * pixel]
      samples[3 * pixel + 1] = samples[4 * pixel + 1]
      samples[3 * pixel + 2] = samples[4 * pixel + 2]
    }
    channels = 3
  }

  static func pixel(_ red: UInt8, _ green: UInt8, _ blue: UInt8, _ alpha: UInt8 = 255) -> UInt32 {
    UInt32(red) | UInt32(green) << 8 | UInt32(blue) << 16 | UInt32(alpha) << 24
  }
}

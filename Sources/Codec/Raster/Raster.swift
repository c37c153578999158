internal import CodecCore
internal import ImageCodec
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

/// Decodes the frames of an image, one after the other.
protocol FrameReader {
  /// Draws the next frame. Nil after the last. The canvas is the same object each time. The delay is in milliseconds,
  /// as in the file.
  mutating func next() throws -> (canvas: Raster, delay: Int)?
  /// The number of times that the animation plays; 0 means forever. Known after the last frame.
  var plays: Int { get }
  /// Whether a frame's data ended before all its pixels; the missing pixels are transparent.
  var isDamaged: Bool { get }
}

extension FrameReader {
  /// The next frames, stacked vertically. Their total number of pixels must be within the limit.
  ///
  /// - Parameter continues: whether more frames will be read later. If not, a single frame is returned as the canvas
  ///   itself.
  mutating func raster(frames count: Int, continues: Bool) throws -> Raster {
    guard var next = try next() else { throw DecodeError.corrupt("the image has no frame") }
    if count == 1, !continues {
      next.canvas.compact()
      return next.canvas
    }
    let (canvas, length) = (next.canvas, next.canvas.bytes.count)
    let raster = try Raster(width: canvas.width, height: canvas.height * count, channels: canvas.channels)
    raster.profile = canvas.profile
    var delays: [Int] = []
    while true {
      (raster.base + delays.count * length).copyMemory(from: canvas.base, byteCount: length)
      // Browsers slow down frames that ask for the highest speed.
      delays.append(next.delay <= 10 ? 100 : next.delay)
      guard delays.count < count else { break }
      guard let following = try self.next() else {
        throw DecodeError.corrupt("the image has fewer frames than its header says")
      }
      next = following
    }
    if count > 1 { raster.animation = Raster.Animation(delays: delays, plays: plays) }
    raster.compact()
    return raster
  }
}

internal import ImageCodec

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

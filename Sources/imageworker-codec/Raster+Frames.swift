internal import ImageCodec

/// Decodes an image of several frames, one after the other.
protocol FrameReader {
  /// Draws the next frame; nil behind the last. The canvas is the same each time. The delay is in milliseconds, as
  /// the file has it.
  mutating func next() throws -> (canvas: Raster, delay: Int)?
  /// The number of times that all frames are shown; 0 is without end. Known after the last frame.
  var plays: Int { get }
  /// Whether a frame's data ended before all its pixels were there: those are transparent.
  var isDamaged: Bool { get }
}

extension Raster {
  /// So many frames, one below the other. Their pixels together are within the limit.
  convenience init(frames count: Int, of reader: inout some FrameReader) throws {
    guard var next = try reader.next() else { throw DecodeError.corrupt("the image has no frame") }
    let height = next.canvas.height
    try self.init(width: next.canvas.width, height: height * count)
    var delays: [Int] = []
    while true {
      let place = pixels[(delays.count * width * height)..<((delays.count + 1) * width * height)]
      _ = UnsafeMutableBufferPointer(rebasing: place).update(fromContentsOf: next.canvas.pixels)
      // Browsers slow down the frames that ask for the highest speed.
      delays.append(next.delay <= 10 ? 100 : next.delay)
      guard delays.count < count else { break }
      guard let following = try reader.next() else { throw DecodeError.corrupt("the image has too few frames") }
      next = following
    }
    if count > 1 { animation = Animation(delays: delays, plays: reader.plays) }
    compact()
  }
}

internal import ImageCodec

/// Decodes an image of several frames, one after the other.
protocol FrameReader {
  /// Draws the next frame; nil behind the last. The canvas is the same each time. The delay is in milliseconds.
  mutating func next() throws -> (canvas: Raster, delay: Int)?
  /// How often all frames are shown, 0 for ever; known behind the last.
  var plays: Int { get }
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
      delays.append(next.delay)
      guard delays.count < count else { break }
      guard let following = try reader.next() else { throw DecodeError.corrupt("the image has too few frames") }
      next = following
    }
    if count > 1 { animation = Animation(delays: delays, plays: reader.plays) }
    compact()
  }
}

extension Input {
  /// Decodes every pixel of all frames, and throws where one is missing.
  ///
  /// - Returns: false where the image is none whose frames are composed here.
  func readAllFrames(_ format: ImageFormat) throws -> Bool {
    if format == .gif {
      var reader = try GIFReader(self)
      while try reader.next() != nil {}
      if reader.isDamaged { throw DecodeError.corrupt("the data of a GIF's picture end before its pixels") }
      return true
    }
    guard format == .png, let animation else { return false }
    var reader = try APNGReader(self, animation)
    while try reader.next() != nil {}
    return true
  }
}

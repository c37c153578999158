internal import CVips
internal import CodecCore
internal import ImageCodec

/// Decodes an animated PNG (PNG, third edition, section 4.9), frame by frame, onto its canvas.
struct APNGReader: FrameReader {
  /// The input, which owns this reader.
  private unowned let input: Input
  private var scan: APNGScan
  private var compositor: FrameCompositor

  /// The size must have been checked against the pixel limit.
  init(_ input: Input, _ scan: APNGScan) throws {
    (self.input, self.scan) = (input, scan)
    let header = try input.header(.png)
    compositor = try FrameCompositor(width: header.width ?? 0, height: header.height ?? 0)
  }

  var plays: Int { scan.plays }
  /// Always false, because `PNGReader` rejects a frame that lacks pixels.
  let isDamaged = false

  mutating func next() throws -> (canvas: Raster, delay: Int)? {
    guard let frame = try scan.nextOrCorrupt() else { return nil }
    let canvas = compositor.canvas
    guard frame.width > 0, frame.height > 0, frame.x + frame.width <= canvas.width,
      frame.y + frame.height <= canvas.height,
      !frame.isStill || frame.width == canvas.width && frame.height == canvas.height
    else { throw DecodeError.corrupt("a frame of the APNG lies outside of its canvas") }
    compositor.begin(
      FrameCompositor.Area(x: frame.x, y: frame.y, width: frame.width, height: frame.height),
      frame.disposal == 1 ? .clears : frame.disposal == 2 ? .restores : .keeps)
    try draw(frame)
    return (canvas, frame.delay)
  }

  private func draw(_ frame: APNGScan.Frame) throws {
    let picture = try input.png(frame: frame).standardized()
    let bands = picture.bands
    var y = 0
    try picture.forEachRows { row in
      let place = compositor.seen(y)
      for x in 0..<frame.width {
        let start = x * bands
        let (green, blue) = bands >= 3 ? (start + 1, start + 2) : (start, start)
        let alpha = bands.isMultiple(of: 2) ? row[start + bands - 1] : 255
        let pixel = Raster.pixel(row[start], row[green], row[blue], alpha)
        place[x] = frame.isBlended ? FrameCompositor.blended(pixel, over: place[x]) : pixel
      }
      y += 1
    }
  }
}

extension APNGScan {
  fileprivate mutating func nextOrCorrupt() throws(DecodeError) -> Frame? {
    do throws(ImageHeaderError) { return try next() } catch { throw .corrupt(error.description) }
  }
}

extension Input {
  /// The frames of an animated PNG; nil if the PNG is not animated.
  var animation: APNGScan? { try? APNGScan(self) }

  /// Whether the image differs from what libvips decodes, which is only the still image.
  func needsCompositing(allFrames: Bool) -> Bool {
    guard let animation else { return false }
    return allFrames || !animation.beginsWithStill
  }
}

internal import CVips
internal import CodecCore
internal import ImageCodec

/// Decodes an animated PNG (PNG, third edition, section 4.9), frame by frame, onto its canvas.
///
/// Each frame is decoded as a separate PNG, which is screened like any other.
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
  /// Always false, because libpng rejects a frame that lacks pixels.
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
    let file = try Input(copying: try file(of: frame)).screened(.png)
    let picture = try file.open(.png, strictness: VIPS_FAIL_ON_ERROR).standardized()
    let bands = picture.bands
    var y = 0
    do {
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
    } catch let error as LibraryError {
      throw file.refusal ?? error.asDecodeError
    }
  }

  /// Builds a PNG file of the frame.
  private func file(of frame: APNGScan.Frame) throws(DecodeError) -> EncodedFile {
    let bytes = input.bytes
    let length = frame.chunks.reduce(0) { $0 + $1.content.count }
    let room = 33 + scan.context.reduce(0) { $0 + $1.count } + 12 + length + 12
    guard length < 1 << 31, let memory = g_try_malloc(gsize(room)) else { throw LibraryError.memory }
    let file = EncodedFile(bytes: memory, count: room)
    var count = 0
    func add(_ part: UnsafeRawBufferPointer) {
      memory.advanced(by: count).copyMemory(from: part.baseAddress!, byteCount: part.count)
      count += part.count
    }
    func add(_ number: Int) { withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { add($0) } }
    func endChunk(from start: Int) {
      add(Int(CRC32.checksum(UnsafeRawBufferPointer(start: memory + start, count: count - start))))
    }
    add(UnsafeRawBufferPointer(rebasing: bytes[..<16]))
    add(frame.width)
    add(frame.height)
    add(UnsafeRawBufferPointer(rebasing: bytes[24..<29]))
    endChunk(from: 12)
    for range in scan.context { add(UnsafeRawBufferPointer(rebasing: bytes[range])) }
    add(length)
    let start = count
    add(Int(PNGChunks.imageData))
    for chunk in frame.chunks {
      let sum = CRC32.checksum(UnsafeRawBufferPointer(rebasing: bytes[chunk.checked]))
      guard sum == bytes.bigEndian(at: chunk.checked.upperBound) else {
        throw .corrupt("the checksum of a frame of the APNG is wrong")
      }
      if !chunk.content.isEmpty { add(UnsafeRawBufferPointer(rebasing: bytes[chunk.content])) }
    }
    endChunk(from: start)
    add(0)
    add(Int(PNGChunks.end))
    endChunk(from: count - 4)
    return file
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

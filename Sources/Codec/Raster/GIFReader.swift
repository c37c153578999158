internal import ImageCodec

/// Decodes a GIF (GIF89a), frame by frame, onto its screen.
struct GIFReader: FrameReader {
  /// The input, which owns this reader.
  private unowned let input: Input
  private var scan: GIFScan
  private var compositor: FrameCompositor
  private(set) var isDamaged = false

  /// The size must have been checked against the pixel limit.
  init(_ input: Input) throws {
    self.input = input
    scan = try Self.corrupt { () throws(ImageHeaderError) in try GIFScan(input) }
    let header = try input.header(.gif)
    compositor = try FrameCompositor(width: header.width ?? 0, height: header.height ?? 0)
  }

  /// Draws the next frame. Nil after the last. The canvas is the same object each time.
  mutating func next() throws -> (canvas: Raster, delay: Int)? {
    var scan = scan
    let next = try Self.corrupt { () throws(ImageHeaderError) in try scan.next() }
    self.scan = scan
    guard let frame = next else { return nil }
    compositor.begin(
      FrameCompositor.Area(x: frame.x, y: frame.y, width: frame.width, height: frame.height), frame.gifDisposal)
    try draw(frame)
    return (compositor.canvas, frame.delay)
  }

  /// The number of times that the animation plays; 0 means forever. Known after the last frame.
  var plays: Int { scan.plays }

  private mutating func draw(_ frame: GIFScan.Frame) throws(DecodeError) {
    let bytes = input.bytes
    let codeSize = Int(bytes[frame.data.lowerBound])
    guard (1...8).contains(codeSize) else { throw .corrupt("the GIF has an invalid code size of \(codeSize) bits") }
    var rows = GIFRows(frame: frame, colors: colors(of: frame), compositor: compositor)
    guard rows.wantsMore else { return }
    let data = content(of: frame)
    data.withUnsafeBufferPointer { data in
      LZWDecoder(data, minimumSize: codeSize).decode { rows.take($0) }
    }
    if rows.wantsMore { isDamaged = true }
  }

  /// The content of the data sub-blocks, joined.
  private func content(of frame: GIFScan.Frame) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(frame.data.count)
    var position = frame.data.lowerBound + 1
    while position < frame.data.upperBound, input.bytes[position] > 0 {
      let end = position + 1 + Int(input.bytes[position])
      content += UnsafeRawBufferPointer(rebasing: input.bytes[(position + 1)..<min(end, input.bytes.count)])
      position = end
    }
    return content
  }

  /// The colours of all 256 indices: black for an index without a colour, 0 for the transparent index.
  private func colors(of frame: GIFScan.Frame) -> [UInt32] {
    var colors = [UInt32](repeating: Raster.pixel(0, 0, 0), count: 256)
    let bytes = input.bytes
    for (index, place) in stride(from: frame.colors.lowerBound, to: frame.colors.upperBound, by: 3).enumerated() {
      colors[index] = Raster.pixel(bytes[place], bytes[place + 1], bytes[place + 2])
    }
    if let transparent = frame.transparentIndex { colors[transparent] = 0 }
    return colors
  }

  private static func corrupt<Value>(_ body: () throws(ImageHeaderError) -> Value) throws(DecodeError) -> Value {
    do throws(ImageHeaderError) { return try body() } catch { throw .corrupt("the GIF is truncated") }
  }
}

/// Writes a frame's indices to the rows of the canvas.
private struct GIFRows {
  private let compositor: FrameCompositor
  private let colors: [UInt32]
  private let hasTransparency: Bool
  private let width: Int
  private let height: Int
  private let isInterlaced: Bool
  private var x = 0
  private var y = 0
  private var pass = 0
  private(set) var wantsMore: Bool

  /// The row order of an interlaced frame, appendix E.
  private static let passes = [(first: 0, step: 8), (first: 4, step: 8), (first: 2, step: 4), (first: 1, step: 2)]

  init(frame: GIFScan.Frame, colors: [UInt32], compositor: FrameCompositor) {
    (self.compositor, self.colors) = (compositor, colors)
    hasTransparency = frame.transparentIndex != nil
    (width, height, isInterlaced) = (frame.width, frame.height, frame.isInterlaced)
    wantsMore = compositor.seenWidth > 0 && compositor.seenHeight > 0
  }

  mutating func take(_ indices: UnsafeBufferPointer<UInt8>) -> Bool {
    var rest = indices[...]
    while wantsMore, !rest.isEmpty {
      let count = min(width - x, rest.count)
      if y < compositor.seenHeight, x < compositor.seenWidth {
        draw(UnsafeBufferPointer(rebasing: rest.prefix(min(count, compositor.seenWidth - x))))
      }
      rest = rest.dropFirst(count)
      x += count
      if x == width { nextRow() }
    }
    return wantsMore
  }

  private func draw(_ indices: UnsafeBufferPointer<UInt8>) {
    let pixels = compositor.seen(y).baseAddress! + x
    colors.withUnsafeBufferPointer { colors in
      if !hasTransparency {
        for place in indices.indices { pixels[place] = colors[Int(indices[place])] }
        return
      }
      for place in indices.indices {
        let color = colors[Int(indices[place])]
        if color != 0 { pixels[place] = color }
      }
    }
  }

  private mutating func nextRow() {
    x = 0
    guard isInterlaced else {
      y += 1
      wantsMore = y < compositor.seenHeight
      return
    }
    y += Self.passes[pass].step
    while y >= height {
      pass += 1
      guard pass < Self.passes.count else { return wantsMore = false }
      y = Self.passes[pass].first
    }
  }
}

extension GIFScan.Frame {
  fileprivate var gifDisposal: FrameCompositor.Disposal {
    switch disposal {
    case 2: .clears
    // Some writers use 4, which browsers treat as 3.
    case 3, 4: .restores
    default: .keeps
    }
  }
}

internal import CodecCore

/// Composes the frames of an animation on its canvas, as browsers do for GIF and APNG (PNG, third edition, section
/// 12.6.2).
///
/// The canvas starts transparent. Parts of a frame outside the canvas are ignored.
struct FrameCompositor {
  /// The change to a frame's area before the next frame is drawn.
  enum Disposal {
    case keeps
    /// The area becomes transparent, whatever background the file names.
    case clears
    /// The area gets back the content from before the frame.
    case restores
  }

  struct Area {
    var (x, y, width, height): (Int, Int, Int, Int)
  }

  let canvas: Raster
  private var area = Area(x: 0, y: 0, width: 0, height: 0)
  private var disposal = Disposal.keeps
  /// The pixels that the last frame covered, row by row.
  private var saved: [UInt32] = []

  init(width: Int, height: Int) throws(LibraryError) { canvas = try Raster(width: width, height: height) }

  /// Prepares the canvas for the next frame. The sides of its area must not be negative.
  mutating func begin(_ next: Area, _ disposal: Disposal) {
    dispose()
    let (x, y) = (min(next.x, canvas.width), min(next.y, canvas.height))
    area = Area(x: x, y: y, width: min(next.width, canvas.width - x), height: min(next.height, canvas.height - y))
    self.disposal = disposal
    guard disposal == .restores else { return }
    saved.removeAll(keepingCapacity: true)
    for row in 0..<area.height { saved += seen(row) }
  }

  private func dispose() {
    guard disposal != .keeps, area.width > 0 else { return }
    for row in 0..<area.height {
      switch disposal {
      case .keeps: break
      case .clears: seen(row).update(repeating: 0)
      case .restores: _ = seen(row).update(fromContentsOf: saved[(row * area.width)..<((row + 1) * area.width)])
      }
    }
  }

  /// Blends a pixel with straight alpha over another, as in section 12.6.2.
  static func blended(_ pixel: UInt32, over under: UInt32) -> UInt32 {
    let (alpha, underAlpha) = (pixel >> 24, under >> 24)
    if alpha == 255 || underAlpha == 0 { return pixel }
    if alpha == 0 { return under }
    let (above, below) = (alpha * 255, (255 - alpha) * underAlpha)
    let sum = above + below
    func mixed(_ shift: UInt32) -> UInt32 {
      let value = ((pixel >> shift & 255) * above + (under >> shift & 255) * below + sum / 2) / sum
      return value << shift
    }
    return mixed(0) | mixed(8) | mixed(16) | ((sum + 127) / 255) << 24
  }

  /// The width of the visible part of the frame.
  var seenWidth: Int { area.width }
  var seenHeight: Int { area.height }

  /// A row of the visible part; `row` must be less than `seenHeight`.
  func seen(_ row: Int) -> UnsafeMutableBufferPointer<UInt32> {
    UnsafeMutableBufferPointer(rebasing: canvas.row(area.y + row)[area.x..<(area.x + area.width)])
  }
}

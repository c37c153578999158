internal import Platform

/// A progress bar on standard error, if that is a terminal.
struct ProgressBar {
  private let images: Int
  private let bytes: Int64
  private let isShown = isatty(STDERR_FILENO) != 0
  private var nextUpdate = Instant.now
  private var isVisible = false

  /// - Parameters:
  ///   - images: the number of all images.
  ///   - bytes: the bytes of all images.
  init(images: Int, bytes: Int64) { (self.images, self.bytes) = (images, bytes) }

  /// Shows the progress, at most ten times a second.
  mutating func advance(to images: Int, _ bytes: Int64) {
    guard isShown, nextUpdate <= .now else { return }
    nextUpdate = .now + .milliseconds(100)
    isVisible = true
    write("\r" + Self.text(images: images, of: self.images, bytes: bytes, of: self.bytes))
  }

  /// Removes the bar, so that a line can be written in its place.
  mutating func clear() {
    guard isVisible else { return }
    isVisible = false
    write("\r" + String(repeating: " ", count: Self.width) + "\r")
  }

  private static let width = 78

  /// `[#########           ]  45 %  123 of 400 images, 1.2M of 3.1M`, in `width` columns. Workers may store more images
  /// meanwhile, so the progress may exceed the total.
  static func text(images: Int, of allImages: Int, bytes: Int64, of allBytes: Int64) -> String {
    let fraction = allBytes > 0 ? min(1, Double(bytes) / Double(allBytes)) : 1
    let filled = Int(fraction * 20)
    let bar = "[" + String(repeating: "#", count: filled) + String(repeating: " ", count: 20 - filled) + "]"
    let percent = String(Int(fraction * 100)).rightAligned(to: 3)
    let (size, allSizes) = (Quantities.size(bytes), Quantities.size(max(bytes, allBytes)))
    let text = "\(bar) \(percent) %  \(images) of \(max(images, allImages)) images, \(size) of \(allSizes)"
    return text.padded(to: width)
  }

  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { systemWrite(STDERR_FILENO, $0.baseAddress!, $0.count) }
  }
}

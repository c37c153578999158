internal import Platform

/// Decides when a progressive image that is arriving is worth a preview.
struct PreviewThrottle {
  private static let interval = Duration.milliseconds(100)
  /// The fraction of the body after which no preview is made, since the image itself is about to arrive.
  private static let nearlyComplete = 0.9

  private var lastScan = 0
  private var next: Instant?

  /// - Parameters:
  ///   - scans: the number of complete scans.
  ///   - total: the bytes of the body, if known.
  mutating func isDue(scans: Int, received: Int64, total: Int64?, at now: Instant) -> Bool {
    guard scans > lastScan, next.map({ now >= $0 }) ?? true else { return false }
    if let total, Double(received) > Double(total) * Self.nearlyComplete { return false }
    lastScan = scans
    next = now.advanced(by: Self.interval)
    return true
  }
}

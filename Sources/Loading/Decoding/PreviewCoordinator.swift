internal import HTTPTransport
internal import ImageCodec
internal import ImageStore
internal import Platform

/// The part of an image that has arrived while its transfer runs.
struct ArrivingImage: Sendable {
  enum Content: Sendable {
    case bytes([UInt8])
    /// A body that is being written to disk.
    case sink(BodySink)
  }

  var content: Content
  /// The number of complete scans, and the offset in bytes at which the last of them ends.
  var scans: Int
  var end: Int
}

/// Makes previews of progressive images while their transfers run. A job has at most one under way; a scan that
/// completes in the meantime gets none.
@LoadingActor
final class PreviewCoordinator {
  /// The maximum number of bytes that a preview is made from: they are held in memory. Scans that end later get no
  /// preview.
  nonisolated static let maxBytes = 8 << 20
  /// The pixels of a preview's longer side.
  private nonisolated static let maxSide = 1024

  private struct Preview {
    /// The decode's handle in the decoder pool, while it is there.
    var ticket: DecodeTicket?
  }

  private let jobs: JobRegistry
  private let decodes: DecodeCoordinator
  private var previews: [JobID: Preview] = [:]

  /// - Parameter decodes: supplies the decoder, its limits and its memory budget.
  init(_ decodes: DecodeCoordinator, _ jobs: JobRegistry) { (self.decodes, self.jobs) = (decodes, jobs) }

  /// Makes a preview for the loads that want one.
  func make(from arriving: ArrivingImage, of job: JobID) {
    guard let transfer = jobs[job]?.transfer, previews[job] == nil,
      !jobs.loads(of: job, awaitingPreviewOf: arriving.scans).isEmpty
    else { return }
    // The memory budget of the decoders is used up; a later scan will try again.
    guard decodes.memory.take(arriving.end) else { return }
    previews[job] = Preview()
    let (storage, maxPixels) = (decodes.storage, decodes.maxPixels)
    storage.perform({ storage.previewTask(of: arriving, maxSide: Self.maxSide, maxPixels: maxPixels) }) {
      [weak self] task in
      guard let self else { return }
      guard let task, self.jobs[job]?.transfer == transfer, let priority = self.jobs.scheduler.job(job)?.priority
      else {
        self.previews[job] = nil
        self.decodes.memory.giveBack(arriving.end)
        return
      }
      self.previews[job]?.ticket = self.decodes.decoder.submit(task, priority: priority.rawValue) { result, _ in
        LoadingActor.run { [weak self] in
          self?.decodes.memory.giveBack(arriving.end)
          self?.previewed(job, transfer, task, result, scans: arriving.scans)
        }
      }
    }
  }

  /// Cancels the preview of a job whose transfer has ended.
  func cancel(of job: JobID) {
    if let ticket = previews[job]?.ticket.take() { decodes.decoder.cancel(ticket) }
  }

  private func previewed(
    _ job: JobID, _ transfer: TransferID, _ task: DecodeTask, _ result: Result<Decoded, DecodeError>, scans: Int
  ) {
    guard case .preview(let path, _) = task.output else { return assertionFailure("the task must be a preview") }
    previews[job]?.ticket = nil
    let storage = decodes.storage
    // A partial image that cannot be decoded is not an error; the complete one may be decodable.
    guard case .success(let decoded) = result, jobs[job]?.transfer == transfer else {
      previews[job] = nil
      return storage.discard(task.output)
    }
    storage.perform({ storage.keepScratch(fileAt: path, format: decoded.format) }) { [weak self] path in
      self?.previews[job] = nil
      guard let jobs = self?.jobs, let path, jobs[job]?.transfer == transfer else { return }
      for load in jobs.loads(of: job, awaitingPreviewOf: scans) {
        load.emit(.preview(path: path, width: decoded.width, height: decoded.height, scan: scans))
      }
    }
  }
}

extension ScanCounter {
  /// Counts the scans of a partial body from an earlier load, on the disk thread. Returns nil if they cannot be counted
  /// or no preview would be made.
  init?(countingIn spool: BodySpool) {
    self.init()
    guard spool.length <= PreviewCoordinator.maxBytes else { return nil }
    var offset: Int64 = 0
    while !isOver, offset < spool.length {
      guard let piece = try? spool.bytes(from: offset, count: 128 << 10), !piece.isEmpty else { return nil }
      piece.withUnsafeBytes { consume($0) }
      offset += Int64(piece.count)
    }
    if isOver { return nil }
  }
}

extension DiskServices {
  /// Builds the decode task for a preview, on the disk thread. Returns nil if the bytes do not suffice.
  fileprivate func previewTask(of arriving: ArrivingImage, maxSide: Int, maxPixels: Int) -> DecodeTask? {
    guard arriving.end <= PreviewCoordinator.maxBytes else { return nil }
    var bytes: [UInt8] = []
    switch arriving.content {
    case .bytes(let all): bytes = Array(all.prefix(arriving.end))
    case .sink(let sink): bytes = (try? sink.spool?.bytes(from: 0, count: arriving.end)) ?? []
    }
    guard bytes.count == arriving.end, let header = try? ImageHeader.read(bytes, format: .jpeg) else { return nil }
    // The complete scans followed by an end-of-image marker form a JPEG that is not truncated.
    bytes += [0xFF, 0xD9]
    guard let path = try? scratch.assumeIsolated({ try $0.newPath() }) else { return nil }
    return DecodeTask(
      source: .bytes(bytes), header: header, output: .preview(path, maxSide: maxSide), maxPixels: maxPixels,
      isolation: .image)
  }

  fileprivate func keepScratch(fileAt path: String, format: ImageFormat?) -> String? {
    try? scratch.assumeIsolated { try $0.adopt(fileAt: path, format: format) }
  }
}

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

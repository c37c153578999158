internal import HTTPTransport
internal import ImageCodec
internal import ImageStore

/// What is there of an image while its transfer runs.
struct ArrivingImage: Sendable {
  enum Content: Sendable {
    case bytes([UInt8])
    /// On its way to disk.
    case sink(BodySink)
  }

  var content: Content
  /// How many of its scans are complete, and after how many bytes they end.
  var scans: Int
  var end: Int
}

/// Previews of progressive images, while their transfers run.
extension Loader {
  /// Most bytes that a preview is made of: they are held in memory. Scans that end later go by.
  nonisolated static let mostPreviewBytes = 8 << 20
  /// Pixels of a preview's longer side.
  private nonisolated static let previewSide = 1024

  /// Has a preview made for the loads that want one. There is one at a time for a transfer; a scan that comes meanwhile
  /// goes by.
  func preview(_ arriving: ArrivingImage, of job: JobID) {
    guard let record = jobs[job], let transfer = record.transfer, !record.isPreviewing,
      !awaitingPreview(of: arriving.scans, of: job).isEmpty
    else { return }
    // Enough waits for a decoder as it is; there will be another scan.
    guard waitingBytes.take(arriving.end) else { return }
    record.isPreviewing = true
    storage.perform({ [storage, maxPixels = settings.maxPixels] in
      storage.previewTask(of: arriving, maxSide: Self.previewSide, maxPixels: maxPixels)
    }) { [weak self] task in
      guard let self else { return }
      guard let task, record.transfer == transfer, let priority = self.scheduler.job(job)?.priority else {
        record.isPreviewing = false
        self.waitingBytes.giveBack(arriving.end)
        return
      }
      record.preview = self.decoder.submit(task, priority: priority.rawValue) { result in
        LoadingActor.run { [weak self] in
          self?.waitingBytes.giveBack(arriving.end)
          self?.previewed(job, record, transfer, task, result, scans: arriving.scans)
        }
      }
    }
  }

  private func awaitingPreview(of scans: Int, of job: JobID) -> [ActiveLoad] {
    scheduler.subscribers(of: job).compactMap { loads[$0] }.filter { $0.awaitsPreview(of: scans) }
  }

  private func previewed(
    _ job: JobID, _ record: JobRecord, _ transfer: TransferID, _ task: DecodeTask,
    _ result: Result<Decoded, DecodeError>, scans: Int
  ) {
    guard case .preview(let path, _) = task.output else { return }
    record.preview = nil
    // What cannot be decoded yet is no preview; the whole may still be.
    guard case .success(let decoded) = result, record.transfer == transfer else {
      record.isPreviewing = false
      return storage.discard(task.output)
    }
    storage.perform({ [storage] in storage.keepScratch(fileAt: path, format: decoded.format?.rawValue) }) {
      [weak self] path in
      record.isPreviewing = false
      guard let self, let path, record.transfer == transfer else { return }
      for load in self.awaitingPreview(of: scans, of: job) {
        load.emit(.preview(path: path, width: decoded.width, height: decoded.height, scan: scans))
      }
    }
  }
}

extension ScanCounter {
  /// Counts the scans in what an earlier load has left, on the disk's thread. Nil where there is nothing to be counted,
  /// or no preview is made any more.
  init?(countingIn spool: BodySpool) {
    self.init()
    guard spool.length <= Loader.mostPreviewBytes else { return nil }
    var offset: Int64 = 0
    while !isOver, offset < spool.length {
      guard let piece = try? spool.bytes(from: offset, count: 128 << 10), !piece.isEmpty else { return nil }
      piece.withUnsafeBytes { take($0) }
      offset += Int64(piece.count)
    }
    if isOver { return nil }
  }
}

extension DiskServices {
  /// On the disk's thread. Nil when what is there is not enough.
  fileprivate func previewTask(of arriving: ArrivingImage, maxSide: Int, maxPixels: Int) -> DecodeTask? {
    guard arriving.end <= Loader.mostPreviewBytes else { return nil }
    var bytes: [UInt8] = []
    switch arriving.content {
    case .bytes(let all): bytes = Array(all.prefix(arriving.end))
    case .sink(let sink): bytes = (try? sink.spool?.bytes(from: 0, count: arriving.end)) ?? []
    }
    guard bytes.count == arriving.end, let header = try? ImageHeader.read(bytes, format: .jpeg) else { return nil }
    // The scans so far and an end-of-image marker: a JPEG that is nowhere cut.
    bytes += [0xFF, 0xD9]
    guard let path = try? scratch.assumeIsolated({ try $0.newPath() }) else { return nil }
    return DecodeTask(
      source: .bytes(bytes), header: header, output: .preview(path, maxSide: maxSide), maxPixels: maxPixels)
  }

  fileprivate func keepScratch(fileAt path: String, format: String?) -> String? {
    try? scratch.assumeIsolated { try $0.adopt(fileAt: path, format: format) }
  }
}

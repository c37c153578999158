internal import HTTPTransport
internal import ImageCodec
internal import ImageStore

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

/// Previews of progressive images while their transfers run.
extension Loader {
  /// The maximum number of bytes that a preview is made from: they are held in memory. Scans that end later get no
  /// preview.
  nonisolated static let maxPreviewBytes = 8 << 20
  /// The pixels of a preview's longer side.
  private nonisolated static let previewSide = 1024

  /// Makes a preview for the loads that want one. A transfer has at most one under way; a scan that completes in the
  /// meantime gets none.
  func preview(_ arriving: ArrivingImage, of job: JobID) {
    guard let record = jobs[job], let transfer = record.transfer, !record.isPreviewing,
      !awaitingPreview(of: arriving.scans, of: job).isEmpty
    else { return }
    // The memory budget of the decoders is used up; a later scan will try again.
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
    // A partial image that cannot be decoded is not an error; the complete one may be decodable.
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
  /// Counts the scans of a partial body from an earlier load, on the disk thread. Returns nil if they cannot be counted
  /// or no preview would be made.
  init?(countingIn spool: BodySpool) {
    self.init()
    guard spool.length <= Loader.maxPreviewBytes else { return nil }
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
  /// Builds the decode task for a preview, on the disk thread. Returns nil if the bytes do not suffice.
  fileprivate func previewTask(of arriving: ArrivingImage, maxSide: Int, maxPixels: Int) -> DecodeTask? {
    guard arriving.end <= Loader.maxPreviewBytes else { return nil }
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
      source: .bytes(bytes), header: header, output: .preview(path, maxSide: maxSide), maxPixels: maxPixels)
  }

  fileprivate func keepScratch(fileAt path: String, format: String?) -> String? {
    try? scratch.assumeIsolated { try $0.adopt(fileAt: path, format: format) }
  }
}

internal import ImageStore
internal import Platform

/// One run of `imageworker cache export`: writes the entries that match a filter into an archive.
///
/// Each image is opened and its digest checked before its first byte is written, so that an entry that a worker removes
/// meanwhile is either whole in the archive or not in it.
struct ArchiveExport {
  struct Counts: Equatable {
    var images = EntrySum()
    /// Entries for requests with credentials, which were left out.
    var withCredentials = 0
    /// Entries that were removed meanwhile.
    var gone = 0
    /// Entries whose files have another digest.
    var damaged = 0
  }

  let cache: OpenCache
  let withVariants: Bool
  let withCredentials: Bool
  private(set) var counts = Counts()

  private static let pieceSize: Int64 = 1 << 18

  init(of cache: OpenCache, withVariants: Bool, withCredentials: Bool) {
    (self.cache, self.withVariants, self.withCredentials) = (cache, withVariants, withCredentials)
  }

  mutating func write(matching filter: ClearFilter, to output: ArchiveOutput) throws(CommandError) {
    var tar = TarWriter { bytes throws(CommandError) in try output.write(bytes) }
    try tar.member(ArchiveFormat.manifestName, ArchiveFormat.manifest, modifiedAt: 0)
    let listing = try cache.listing(matching: filter, now: time(nil))
    while let page = try cache.nextPage(of: listing) {
      for entry in page where withVariants || entry.variant.isEmpty {
        guard entry.partition.isEmpty || withCredentials else {
          counts.withCredentials += 1
          continue
        }
        switch try cache.perform({ tier throws(StoreError) in try tier.open(entry) }) {
        case .opened(let opened):
          counts.images.add(entry)
          try write(opened, to: &tar)
        case .gone: counts.gone += 1
        case .damaged: counts.damaged += 1
        }
      }
    }
    try tar.finish()
    try output.finish()
  }

  private func write(_ entry: OpenEntry, to tar: inout TarWriter) throws(CommandError) {
    let (number, response) = (counts.images.entries, entry.response)
    let description = ArchivedResponse.description(of: response, withCredentials: withCredentials)
    try tar.member(ArchiveFormat.descriptionName(number), description, modifiedAt: response.storedAt)
    let ending = response.file.split(separator: ".").last.map { String($0) } ?? "bin"
    let name = ArchiveFormat.imageName(number, ending: ending)
    try tar.begin(TarHeader(name: name, size: response.byteCount, modifiedAt: response.storedAt))
    var offset: Int64 = 0
    while offset < response.byteCount {
      let piece = try read(entry, at: offset, count: Int(min(response.byteCount - offset, Self.pieceSize)))
      try tar.append(piece)
      offset += Int64(piece.count)
    }
  }

  private func read(_ entry: OpenEntry, at offset: Int64, count: Int) throws(CommandError) -> [UInt8] {
    do throws(StoreError) {
      let piece = try entry.read(at: offset, count: count)
      if !piece.isEmpty { return piece }
      throw StoreError(.damaged, "\(entry.response.file) was truncated while it was read")
    } catch {
      throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }
}

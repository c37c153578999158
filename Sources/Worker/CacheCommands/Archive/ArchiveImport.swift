internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Threads

/// One run of `imageworker cache import`: stores the entries of an archive.
///
/// The archive is not trusted: it cannot choose a path, every size is bounded, and an entry is stored only if its image
/// has the digest and the format that its description names. Each entry is committed by itself.
struct ArchiveImport {
  struct Counts: Equatable {
    /// Entries that were stored.
    var stored = 0
    /// Bytes of the images that were stored, and their size on disk.
    var bytes: Int64 = 0
    var allocated: Int64 = 0
    /// Entries that the cache has as new or newer.
    var kept = 0
    /// Entries that were refused, because they are invalid or have no room in the limit.
    var refused = 0
  }

  let cache: OpenCache
  let replacing: Bool
  /// The bytes on disk that the imported images may have together, so that they do not evict each other.
  let maxAllocated: Int64
  private(set) var counts = Counts()
  /// The number of the entry that is being read, from 1.
  private(set) var number = 0
  private let onRefusal: (String) -> Void

  /// - Parameter onRefusal: receives a line about each entry that is refused.
  init(
    into cache: OpenCache, replacing: Bool, maxAllocated: Int64, onRefusal: @escaping (String) -> Void
  ) {
    (self.cache, self.replacing, self.maxAllocated) = (cache, replacing, maxAllocated)
    self.onRefusal = onRefusal
  }

  /// Reads the archive to its end.
  ///
  /// - Throws: an error with the status EX_DATAERR that names the entry if the archive cannot be read further. The
  ///   entries before are stored.
  mutating func read(_ input: ArchiveInput) throws(CommandError) {
    var tar = TarReader { count throws(ArchiveError) in try input.read(count) }
    do throws(ArchiveError) {
      guard let manifest = try tar.next(), manifest.name == ArchiveFormat.manifestName else {
        throw ArchiveError("it does not begin with \(ArchiveFormat.manifestName)")
      }
      try ArchiveFormat.check(manifest: try Self.description(manifest, in: &tar))
    } catch {
      throw CommandError(
        status: EX_DATAERR, message: "this is no archive of imageworker cache export: \(error.message)")
    }
    while try readEntry(of: &tar) {}
  }

  /// Reads one entry. Returns false at the end of the archive.
  private mutating func readEntry(of tar: inout TarReader) throws(CommandError) -> Bool {
    number += 1
    let outcome: Outcome
    do throws(ArchiveError) {
      guard let header = try tar.next() else { return false }
      guard header.name == ArchiveFormat.descriptionName(number) else {
        throw ArchiveError("\(ArchiveFormat.descriptionName(number)) expected, and not \(header.name.quotable)")
      }
      let description = try Self.description(header, in: &tar)
      guard let image = try tar.next(), ArchiveFormat.isImageName(image.name, number) else {
        throw ArchiveError("\(ArchiveFormat.descriptionName(number)) is not followed by its image")
      }
      let draft: StoredResponse
      do throws(ArchiveError) {
        draft = try ArchivedResponse.draft(from: description, now: time(nil))
        guard draft.byteCount == image.size else {
          throw ArchiveError("its description says \(draft.byteCount) bytes, and its image has \(image.size)")
        }
      } catch {
        refuse(error.message)
        try tar.skip()
        return true
      }
      outcome = try store(draft, from: &tar)
      try tar.skip()
    } catch {
      throw CommandError(
        status: EX_DATAERR,
        message: "entry \(number): \(error.message); \(counts.text) before it")
    }
    switch outcome {
    case .stored(let bytes, let allocated):
      counts.stored += 1
      counts.bytes += bytes
      counts.allocated += allocated
    case .kept: counts.kept += 1
    case .refused(let reason): refuse(reason)
    case .failed(let error): throw error
    }
    return true
  }

  private mutating func refuse(_ reason: String) {
    counts.refused += 1
    onRefusal("entry \(number): \(reason)")
  }

  private static func description(_ header: TarHeader, in tar: inout TarReader) throws(ArchiveError) -> [UInt8] {
    guard header.size <= ArchiveFormat.maxDescriptionBytes else {
      throw ArchiveError("\(header.name.quotable) has \(header.size) bytes")
    }
    return try tar.content()
  }

  // MARK: Storing

  private enum Outcome: Sendable {
    case stored(bytes: Int64, allocated: Int64)
    case kept
    case refused(String)
    case failed(CommandError)
  }

  /// Stores the image that the archive contains next, unless it is to be skipped.
  private func store(_ draft: StoredResponse, from tar: inout TarReader) throws(ArchiveError) -> Outcome {
    let (replacing, room) = (replacing, maxAllocated - counts.allocated)
    let beginning = perform { tier throws(StoreError) -> Beginning in
      if !replacing, tier.hasNewer(than: draft) { return .ended(.kept) }
      guard try tier.allocated(draft.byteCount) <= room else {
        return .ended(.refused("it and the images before it exceed the disk limit"))
      }
      return .spool(try tier.makeSpool(expected: draft.byteCount))
    }
    let spool: BodySpool
    switch beginning {
    case .success(.spool(let new)): spool = new
    case .success(.ended(let outcome)): return outcome
    case .failure(let outcome): return outcome.value
    }
    do throws(ArchiveError) {
      while case let piece = try tar.piece(), !piece.isEmpty {
        let added = perform { _ throws(StoreError) in
          try spool.assumeIsolatedThrowing { spool throws(StoreError) in try spool.append(piece) }
        }
        if case .failure(let outcome) = added {
          discard(spool)
          return outcome.value
        }
      }
    } catch {
      discard(spool)
      throw error
    }
    let stored = perform { tier throws(StoreError) in
      do throws(StoreError) {
        let outcome = try Self.store(spool, as: draft, replacing: replacing, in: tier)
        spool.assumeIsolated { $0.discard() }
        return outcome
      } catch {
        spool.assumeIsolated { $0.discard() }
        throw error
      }
    }
    switch stored {
    case .success(let outcome): return outcome
    case .failure(let outcome): return outcome.value
    }
  }

  /// Compares a complete image with its description, and stores it.
  private static func store(
    _ spool: BodySpool, as draft: StoredResponse, replacing: Bool, in tier: isolated DiskTier
  ) throws(StoreError) -> Outcome {
    let digest = try spool.assumeIsolatedThrowing { spool throws(StoreError) in try spool.finalizeDigest() }
    guard digest == draft.digest else { return .refused("its image does not have the digest of its description") }
    var draft = draft
    if let format = draft.format.flatMap({ ImageFormat(rawValue: $0) }) {
      let content = SpoolSource(spool: spool)
      let prefix = content.bytes(at: 0, count: Recognition.prefixLength)
      guard Recognition(prefix: prefix, isComplete: content.count <= prefix.count) == .image(format) else {
        return .refused("its image is not of the format \(format.rawValue)")
      }
      // As a worker does without a transform: an image whose header is damaged is stored without its size.
      try? draft.describe(content, format: format)
    }
    guard try tier.storeImported(.spool(spool), as: draft, replacing: replacing) else { return .kept }
    return .stored(bytes: draft.byteCount, allocated: try tier.allocated(draft.byteCount))
  }

  private func discard(_ spool: BodySpool) {
    _ = perform { _ throws(StoreError) in spool.assumeIsolated { $0.discard() } }
  }

  private enum Beginning: Sendable {
    case spool(BodySpool)
    case ended(Outcome)
  }

  /// An outcome as an error.
  private struct Failure: Error {
    let value: Outcome
  }

  /// Runs `work` on the thread of the tier. An error that concerns one entry refuses it, any other ends the import.
  private func perform<Result: Sendable>(
    _ work: @escaping @Sendable (isolated DiskTier) throws(StoreError) -> Result
  ) -> Swift.Result<Result, Failure> {
    do throws(CommandError) {
      let result = try cache.perform { tier in
        Swift.Result { () throws(StoreError) in try work(tier) }
      }
      return result.mapError { error in
        switch error.kind {
        case .outdated: Failure(value: .kept)
        case .overLimit: Failure(value: .refused(error.message))
        default: Failure(value: .failed(CommandError(status: ExitStatus.inputOrOutput, message: error.message)))
        }
      }
    } catch {
      return .failure(Failure(value: .failed(error)))
    }
  }
}

internal import Threads

/// Looks up and reads responses.
extension DiskTier {
  /// All stored responses of the key, which differ in the request fields that their Vary names, newest first. Empty if
  /// the tier cannot be used.
  ///
  /// A response may be deleted before it is read: `read` and `check` detect that.
  public func look(up key: String, partition: String = "", variant: String = "") -> [StoredResponse] {
    guard let boot = try? session.usable().bootNumber else { return [] }
    let responses = try? session.withIndex { index throws(SQLiteError) in
      try index.find(key: key, partition: partition, variant: variant, boot: boot)
    }
    guard let responses, responses.count > 1 else { return responses ?? [] }
    return responses.sorted { ($0.responseTime, $0.id) > ($1.responseTime, $1.id) }
  }

  /// Whether the response is still stored, and not replaced or cleared.
  public func contains(_ response: StoredResponse) -> Bool {
    let record = try? session.withIndex { index throws(SQLiteError) in try index.record(response.id) }
    return (record ?? nil) != nil
  }

  /// The stored variants of an original, as canonical transforms.
  public func variants(of key: String, partition: String = "") -> [String] {
    let names = try? session.withIndex { index throws(SQLiteError) in
      try index.variantNames(key: key, partition: partition)
    }
    return names ?? []
  }

  /// How a stored response has been used.
  public struct Usage: Sendable, Equatable {
    /// When it was last delivered, in Unix seconds; nil if it never was.
    public var lastUse: Int?
    /// The number of deliveries since it was stored.
    public var count: Int
  }

  /// The use of a response by all workers, except for uses by peers in the last seconds. Nil if the response is
  /// deleted.
  public func usage(of response: StoredResponse) -> Usage? {
    drainDeliveries()
    let written = try? session.withIndex { index throws(SQLiteError) in try index.usage(of: response.id) }
    guard let (written, uses) = written ?? nil else { return nil }
    let unwritten = retention.unwritten.uses[response.id]
    let lastUse = max(written, unwritten?.at ?? 0)
    return Usage(lastUse: lastUse > 0 ? lastUse : nil, count: uses + (unwritten?.times ?? 0))
  }

  public nonisolated func absolutePath(of response: StoredResponse) -> String { response.path(below: directory) }

  /// The bytes of a stored response.
  ///
  /// Throws `damaged` if the file is missing, has another size or, if `Verification` asks for a check now, another
  /// digest. The response is then dropped.
  public func read(_ response: StoredResponse) throws(StoreError) -> [UInt8] {
    let folder = try session.usable().folder
    let file = try open(response, in: folder)
    defer { closeFile(file) }
    let bytes = try readBytes(Int(response.content.byteCount), at: 0, from: file, response.file, environment.files)
    guard bytes.count == response.content.byteCount else { throw drop(response, "is truncated") }
    if mustVerify(response) {
      guard SHA256.digest(of: bytes) == response.content.digest else {
        throw drop(response, "does not match its digest")
      }
      recordVerified(response)
    }
    return bytes
  }

  /// Whether the file can be delivered by its path. Makes the same checks as `read` without keeping the bytes.
  public func check(_ response: StoredResponse) -> Bool {
    guard let folder = try? session.usable().folder else { return false }
    guard mustVerify(response) else { return hasFile(of: response, in: folder) }
    guard let file = try? open(response, in: folder) else { return false }
    defer { closeFile(file) }
    guard let digest = try? digest(of: file, response.file) else { return false }
    guard digest == response.content.digest else {
      _ = drop(response, "does not match its digest")
      return false
    }
    recordVerified(response)
    return true
  }

  /// Whether the file exists and has its size, regardless of `Verification`. Drops the response otherwise.
  public func hasFile(of response: StoredResponse) -> Bool {
    guard let folder = try? session.usable().folder else { return false }
    return hasFile(of: response, in: folder)
  }

  private func hasFile(of response: StoredResponse, in folder: CacheFolder) -> Bool {
    let path = response.file
    do throws(FileError) {
      let status = try environment.files.status(path, in: folder.descriptor)
      if status.byteCount == response.content.byteCount { return true }
      _ = drop(response, "does not have its recorded size")
    } catch {
      if error.isMissing { _ = drop(response, "is missing") }
    }
    return false
  }

  private func open(_ response: StoredResponse, in folder: CacheFolder) throws(StoreError) -> Int32 {
    let path = response.file
    var file: Int32 = -1
    do throws(FileError) {
      file = try environment.files.openFile(path, in: folder.descriptor)
      if try environment.files.status(of: file, path).byteCount == response.content.byteCount { return file }
    } catch {
      if file >= 0 { closeFile(file) }
      if error.isMissing { throw drop(response, "is missing") }
      throw StoreError(error)
    }
    closeFile(file)
    throw drop(response, "does not have its recorded size")
  }

  private func drop(_ response: StoredResponse, _ reason: String) -> StoreError {
    if mode == .readWrite {
      _ = try? session.withIndex { index throws(SQLiteError) in try index.delete(response.id) }
      session.folder?.remove(response.file)
    }
    return StoreError(.damaged, "\(absolutePath(of: response)) \(reason)")
  }

  private func mustVerify(_ response: StoredResponse) -> Bool {
    switch verification.withLock({ $0 }) {
    case .always: true
    case .never: false
    case .random:
      !response.isVerified && !retention.unwritten.verified.contains(response.id) || environment.random() % 100 == 0
    }
  }

  /// Records that the digest matched. The index is updated with the next flush of uses.
  private func recordVerified(_ response: StoredResponse) {
    guard !response.isVerified, retention.recordVerified(response.id), mode == .readWrite else { return }
    schedule.recordUse()
  }
}

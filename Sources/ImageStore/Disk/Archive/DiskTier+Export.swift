internal import Platform

/// A stored response with its open file, which can be read to its end whatever happens to the entry meanwhile.
public final class OpenEntry: Sendable {
  public let response: StoredResponse
  private let descriptor: Int32
  private let files: FileSystem

  init(_ response: StoredResponse, _ descriptor: Int32, _ files: FileSystem) {
    (self.response, self.descriptor, self.files) = (response, descriptor, files)
  }

  deinit { close(descriptor) }

  /// Reads up to `count` bytes from `offset`; fewer only at the end of the file.
  public func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try readBytes(count, at: offset, from: descriptor, response.file, files)
  }
}

/// Opens entries for an archive.
extension DiskTier {
  public enum OpenResult: Sendable {
    case opened(OpenEntry)
    /// The entry, or its file, has been removed since it was listed.
    case gone
    /// The file has another size or digest.
    case damaged
  }

  /// Opens an entry of a read-only tier, and reads it once for its digest.
  public func open(_ entry: CacheEntry) throws(StoreError) -> OpenResult {
    let opened = try session.usable()
    let found = try session.withSettledIndex { index throws(SQLiteError) in
      try index.response(entry.id, boot: opened.bootNumber)
    }
    guard let response = found else { return .gone }
    let path = response.file
    do throws(FileError) {
      let file = try environment.files.openFile(path, in: opened.folder.descriptor)
      let result = OpenEntry(response, file, environment.files)
      guard try environment.files.status(of: file, path).byteCount == response.byteCount,
        try digest(of: file, path) == response.digest
      else { return .damaged }
      return .opened(result)
    } catch {
      if error.isMissing { return .gone }
      throw StoreError(error)
    }
  }
}

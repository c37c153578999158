internal import HTTPTransport
internal import ImageStore
internal import Threads

/// Files of the host and of the decoders.
extension DiskServices {
  /// Reads a file of the host that is not stored: into memory, or a large one into a scratch file.
  ///
  /// - Parameter isWanted: asked from time to time, as a load may end while its file is read.
  @LoadingActor
  func read(
    _ place: HostPlace, maxBytes: Int64, while isWanted: @escaping @Sendable () -> Bool,
    then completion: @escaping @LoadingActor @Sendable (Result<Download.Body, LoadError>) -> Void
  ) {
    perform(
      onHostFiles: true,
      {
        Result { () throws(LoadError) in
          let file = try self.open(place, maxBytes: maxBytes)
          do throws(StoreError) {
            guard file.byteCount > Self.largestUnstored else { return .bytes(try file.readAll(while: isWanted)) }
            return .spool(try self.copy(file, while: isWanted))
          } catch {
            throw LoadError(error)
          }
        }
      }, then: completion)
  }

  /// Larger files are copied to the scratch folder.
  private static let largestUnstored: Int64 = 64 << 20

  /// Copies a file to the scratch folder by way of the disk thread, and blocks until it is there.
  private func copy(_ file: HostFile, while isWanted: () -> Bool) throws(StoreError) -> SpooledBody {
    let hasRoom = Locked(false)
    let sink = makeSink(keeping: false, expected: file.byteCount) {
      hasRoom.withLock { $0 = true }
      hasRoom.notify()
    }
    let copied = Result { () throws(StoreError) in
      try file.forEachPiece(while: isWanted) { piece throws(StoreError) in
        switch piece.withUnsafeBytes({ sink.append($0) }) {
        case .pause: hasRoom.wait { $0 ? ($0 = false) : nil }
        case .abort: throw StoreError(.io, "the file cannot be copied")
        default: break
        }
      }
    }
    let result = Locked<Result<SpooledBody, StoreError>?>(nil)
    sink.finish { body in
      if case .failure = copied { try? body.get().spool.drop() }
      result.withLock { $0 = body }
      result.notify()
    }
    // If the sink has failed, its error says why.
    let body = try result.wait { $0 }!.get()
    try copied.get()
    return body
  }

  /// Reads a file that is to be stored, of the host or of a decoder. Must run on the disk thread. A file that the cache
  /// has no space for is read into memory if the memory tier would take it; otherwise it goes to the scratch folder.
  func read(_ place: HostPlace, maxBytes: Int64, largestInMemory: Int64) throws(LoadError) -> Download.Body {
    let file = try open(place, maxBytes: maxBytes)
    do throws(StoreError) {
      guard let tier, file.byteCount > Download.spoolThreshold else { return .bytes(try file.readAll()) }
      do throws(StoreError) {
        let spool = try makeSpool(in: tier, expected: file.byteCount)()
        return .spool(SpooledBody(spool: try filled(spool, from: file), isScratch: false))
      } catch {
        if file.byteCount <= largestInMemory { return .bytes(try file.readAll()) }
        // The load does not fail because the cache does.
        return .spool(SpooledBody(spool: try filled(try makeScratchSpool(), from: file), isScratch: true))
      }
    } catch {
      throw LoadError(error)
    }
  }

  private func open(_ place: HostPlace, maxBytes: Int64) throws(LoadError) -> HostFile {
    let file: HostFile
    do throws(StoreError) {
      file = try HostFile(place)
    } catch {
      throw LoadError(error)
    }
    WakeupCoalescer.release()
    guard file.byteCount <= maxBytes else {
      throw LoadError.tooLarge("file", bytes: file.byteCount, maxBytes: maxBytes)
    }
    return file
  }

  private func filled(_ spool: BodySpool, from file: HostFile) throws(StoreError) -> BodySpool {
    do throws(StoreError) {
      try file.forEachPiece { piece throws(StoreError) in try spool.add(piece) }
      return spool
    } catch {
      spool.drop()
      throw error
    }
  }
}

extension HostFile {
  fileprivate func readAll(while isWanted: () -> Bool = { true }) throws(StoreError) -> [UInt8] {
    let bytes = try read(at: 0, count: Int(byteCount), while: isWanted)
    try checkUnchanged()
    return bytes
  }

  /// Reads up to the size that the file had when it was opened: it may grow in the meantime.
  fileprivate func forEachPiece(
    while isWanted: () -> Bool = { true }, _ body: ([UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var offset: Int64 = 0
    while offset < byteCount {
      let piece = try read(at: offset, count: Int(min(byteCount - offset, 1 << 18)), while: isWanted)
      if piece.isEmpty { break }
      try body(piece)
      offset += Int64(piece.count)
    }
    try checkUnchanged()
  }
}

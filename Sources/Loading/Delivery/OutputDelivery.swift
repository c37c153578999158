internal import ImageCodec
internal import ImageStore
internal import Threads

/// The delivery of the files that one decode has made for a load: all of them, or none.
struct OutputDelivery: Sendable {
  let orders: [OutputOrder]
  /// The properties of the files, as the decoder says.
  let files: [Decoded.File]
  /// The file that has all of them, one after the other.
  let path: String
  let original: ImageDescription
  let commitPoint: CommitPoint

  /// Must run on the disk thread. No target is replaced before all files are complete. Should the system then fail to
  /// rename one of them, those that were renamed are removed.
  func perform(in storage: DiskServices) -> Result<[LoadedImage.Output], LoadError> {
    var outputs: [LoadedImage.Output] = []
    var copies: [(copy: ReplacementFile, target: String, name: String)] = []
    do {
      let source = try HostFile(path)
      var offset: Int64 = 0
      for (order, file) in zip(orders, files) {
        let bytes = try source.read(at: offset, count: file.bytes)
        offset += Int64(file.bytes)
        var output = LoadedImage.Output(order, file, of: original)
        do throws(StoreError) {
          if let target = order.saveTo {
            let copy = try ReplacementFile(target, mode: 0o666)
            if let mode = order.mode { copy.setMode(mode) }
            try copy.write(bytes)
            if let other = copies.first(where: { $0.copy.replacesSameFile(as: copy) }) {
              throw StoreError(.io, "\(target) is the file of the output \(other.name)")
            }
            copies.append((copy, target, order.name))
          }
          if order.delivery == .path {
            output.path = try storage.scratch.assumeIsolatedThrowing { scratch throws(StoreError) in
              try scratch.store(.bytes(bytes), format: file.format)
            }
          }
        } catch {
          throw LoadError(error, ofOutput: order.name)
        }
        if order.delivery == .data { output.data = bytes }
        outputs.append(output)
      }
      guard commitPoint.pass() else { throw LoadError(.cancelled, "cancelled") }
      for (index, (copy, _, name)) in copies.enumerated() {
        do throws(StoreError) { try copy.commit() } catch {
          for (_, target, _) in copies[..<index] { remove(fileAt: target) }
          throw LoadError(error, ofOutput: name)
        }
      }
      return .success(outputs)
    } catch {
      for case let path? in outputs.map(\.path) { remove(fileAt: path) }
      return .failure(LoadError(ofDiskWork: error))
    }
  }
}

extension LoadError {
  fileprivate init(_ error: StoreError, ofOutput name: String) {
    self.init(error)
    output = name
  }
}

/// The moment from which a load cannot be cancelled any more, because its files take their names. Used by two threads:
/// the first of `pass` and `close` decides.
final class CommitPoint: Sendable {
  private enum State {
    case open, passed, closed
  }

  private let state = Locked(State.open)

  /// Returns false if the load has ended.
  func pass() -> Bool { decide(.passed) }

  /// Called when the load ends. Returns false if it must not, because its files take their names.
  func close() -> Bool { decide(.closed) }

  private func decide(_ decision: State) -> Bool {
    state.withLock { state in
      if state == .open { state = decision }
      return state == decision
    }
  }
}

internal import ImageCodec
internal import ImageStore
internal import Threads

/// The delivery of the files that one decode has made for a load: all of them, or none.
struct OutputDelivery: Sendable {
  let orders: [OutputOrder]
  /// What the decoder says of the files.
  let files: [Decoded.File]
  /// The file that has all of them, one after the other.
  let path: String
  let original: ImageDescription

  /// Must run on the disk thread. No target is replaced before all files are complete. Should the system then fail to
  /// rename one of them, those that were renamed are removed.
  func perform(in storage: DiskServices) -> Result<[LoadedImage.Output], LoadError> {
    var outputs: [LoadedImage.Output] = []
    var copies: [(copy: ReplacementFile, target: String)] = []
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
            copies.append((copy, target))
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
      for index in copies.indices {
        do throws(StoreError) { try copies[index].copy.commit() } catch {
          for (_, target) in copies[..<index] { remove(fileAt: target) }
          throw error
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

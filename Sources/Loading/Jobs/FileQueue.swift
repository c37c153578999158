internal import ImageCodec

/// The loads whose source is a file of the host. Only a few files are read ahead of the decoders, since their content
/// waits in memory.
///
/// A pure value: a load begins when `add` or `next` returns it, and ends with `end`.
struct FileQueue {
  private let maxUnderWay: Int
  private var underWay: Set<LoadID> = []
  private var waiting: [LoadID] = []
  var waitingCount: Int { waiting.count }

  /// - Parameter maxUnderWay: the maximum number of files that are read, or wait for a decode, or are decoded.
  init(maxUnderWay: Int = max(8, 2 * Processors.count)) { self.maxUnderWay = maxUnderWay }

  /// Returns whether the load begins; otherwise it waits.
  mutating func add(_ load: LoadID) -> Bool {
    if underWay.count < maxUnderWay {
      underWay.insert(load)
      return true
    }
    waiting.append(load)
    return false
  }

  /// Removes a load that has ended. Has no effect on any other.
  mutating func end(_ load: LoadID) { underWay.remove(load) }

  /// The next load that begins; nil if none waits or may begin. The first of those with the highest priority.
  ///
  /// - Parameter priority: that of a load; nil if it has ended, after which it is forgotten.
  mutating func next(priority: (LoadID) -> Priority?) -> LoadID? {
    guard underWay.count < maxUnderWay, !waiting.isEmpty else { return nil }
    waiting.removeAll { priority($0) == nil }
    guard let highest = waiting.lazy.compactMap(priority).max(),
      let index = waiting.firstIndex(where: { priority($0) == highest })
    else { return nil }
    underWay.insert(waiting[index])
    return waiting.remove(at: index)
  }
}

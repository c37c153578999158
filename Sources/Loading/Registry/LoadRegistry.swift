internal import Threads

/// Identifies a load, a prefetch or an item of one until it ends. Later IDs are greater.
public struct LoadID: SlotNumbered, Comparable {
  let slot: Int32
  /// A number that no other load or prefetch of this worker has.
  public let serial: UInt64

  init(slot: Int32, serial: UInt64) {
    self.slot = slot
    self.serial = serial
  }

  public static func == (left: Self, right: Self) -> Bool { left.serial == right.serial }
  public static func < (left: Self, right: Self) -> Bool { left.serial < right.serial }
  public func hash(into hasher: inout Hasher) { hasher.combine(serial) }
}

/// The loads and prefetches that have not ended, found by ID and by the labels that hosts give.
@LoadingActor
final class LoadRegistry {
  private var loads = SlotMap<LoadID, ActiveLoad>()
  private var prefetches: [LoadID: Prefetch] = [:]
  private var index = LoadIndex()
  private var ids = GenerationalIDPool<LoadID>()

  nonisolated init() {}

  /// Whether no load, no prefetch and no ID is in use.
  var isEmpty: Bool { loads.isEmpty && prefetches.isEmpty && ids.count == 0 && index.isEmpty }

  // MARK: - IDs

  func makeID() -> LoadID { ids.take() }

  /// Frees an ID, which must no longer be in use.
  func releaseID(_ id: LoadID) { ids.giveBack(id) }

  // MARK: - Loads

  subscript(_ id: LoadID) -> ActiveLoad? { loads[id] }

  func insert(_ load: ActiveLoad) {
    loads[load.id] = load
    index.insert(load.id, load.labels)
  }

  func remove(_ load: ActiveLoad) {
    loads.remove(load.id)
    index.remove(load.id, load.labels)
  }

  var allLoads: [ActiveLoad] { loads.ids.compactMap { loads[$0] } }

  /// The loads that no host waits for.
  var internalLoads: [LoadID] { loads.ids.filter { loads[$0]?.isInternal == true } }

  // MARK: - Prefetches

  func prefetch(_ id: LoadID) -> Prefetch? { prefetches[id] }

  var allPrefetches: some Collection<Prefetch> { prefetches.values }

  func insert(_ prefetch: Prefetch) {
    prefetches[prefetch.id] = prefetch
    index.insert(prefetch.id, LoadIndex.Labels(group: prefetch.group))
  }

  /// Removes a prefetch that has ended. Returns false if it has been removed before.
  func remove(_ prefetch: Prefetch) -> Bool {
    guard prefetches.removeValue(forKey: prefetch.id) != nil else { return false }
    index.remove(prefetch.id, LoadIndex.Labels(group: prefetch.group))
    return true
  }

  // MARK: - Selections

  /// The loads and prefetches that a command of the host applies to, in the order in which they were submitted.
  func select(_ selection: Loader.Selection) -> [LoadID] {
    switch selection {
    case .one(let id): [id]
    case .url(let url): index.loads(url: url)
    case .group(let group): index.loads(group: group)
    case .slot(let slot): index.loads(slot: slot)
    case .all: (loads.ids.filter { loads[$0]?.isInternal == false } + prefetches.keys).sorted()
    }
  }

  /// The loads in the request's slot, if they are for another image. All loads in a slot are for one image.
  func loadsReplaced(by request: LoadRequest) -> [LoadID] {
    guard let slot = request.slot, let some = index.someLoad(slot: slot),
      loads[some]?.request.namesImage(of: request) != true
    else { return [] }
    return index.loads(slot: slot)
  }
}

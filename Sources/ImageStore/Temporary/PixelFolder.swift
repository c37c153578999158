public import Platform
public import Threads

/// Decoded images in shared memory, which hosts map. Each region is a file that belongs to the host until the host
/// releases it.
///
/// The regions are in a folder of this process in `/dev/shm/imageworker-UID`, if this user can have it. They are
/// deleted when the process ends, or after a crash when the next process starts. A region that a host has mapped stays
/// mapped.
public actor PixelFolder {
  public struct Counts: Sendable, Equatable {
    public var regions = 0
    public var bytes: Int64 = 0
  }

  /// The maximum total bytes of all regions, and the maximum fraction of the free space that they may use.
  static let budget: Int64 = 1 << 30
  private static let maxFraction = 0.5

  private nonisolated let executor: ThreadExecutor
  private let environment: StoreEnvironment
  private let home: ProcessFolder
  private var counter: Int64 = 0
  private var regions: [String: Region] = [:]
  /// The released regions that the next images get, the oldest first. They contain zeros.
  private var free: [FreeRegion] = []
  private var bytes: Int64 = 0

  private struct Region {
    var byteCount: Int64
    /// False while it is being filled.
    var isDelivered = false
  }

  private struct FreeRegion {
    let path: String
    let byteCount: Int64
    let since: Instant
  }

  /// The maximum total bytes of free regions, and the time for which they are kept.
  static let freeBudget: Int64 = 256 << 20
  public static let freeTime = Duration.seconds(10)

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter parent: the common folder of all processes of this user; nil for the default.
  public init(parent: String? = nil, executor: ThreadExecutor, environment: StoreEnvironment = .system) {
    self.executor = executor
    self.environment = environment
    home = ProcessFolder(in: parent ?? Self.defaultParent, environment: environment)
  }

  private static var defaultParent: String {
    let name = "/imageworker-\(geteuid())"
    if access("/dev/shm", W_OK) == 0, !isOfOther("/dev/shm" + name) { return "/dev/shm" + name }
    if let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), directory.hasPrefix("/") {
      return directory + name
    }
    return ProcessFolder.defaultParent + "-pixels"
  }

  /// Whether another user has created the file: anyone may, in `/dev/shm`.
  static func isOfOther(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_uid != geteuid()
  }

  /// Reserves space for a region of at most `byteCount` bytes and returns the path where it is to be created, or where
  /// one is whose content is zeros. `deliver` or `drop` must follow.
  ///
  /// Throws `overLimit` if the budget does not allow it, `diskFull` or `io`.
  public func reserve(byteCount: Int64) throws(StoreError) -> String {
    if let path = reuse(for: byteCount) {
      dropFree(beyond: Self.budget - bytes)
      return path
    }
    dropFree(beyond: Self.budget - bytes - byteCount)
    let folder = try StoreError.mapping(home.open)
    if try !hasSpace(for: byteCount, in: folder) {
      dropFree(beyond: 0)
      guard try hasSpace(for: byteCount, in: folder) else {
        throw StoreError(.overLimit, "\(regions.count) pixel regions with \(bytes) bytes leave no space; release some")
      }
    }
    counter += 1
    let path = folder.path + "/\(counter).pixels"
    regions[path] = Region(byteCount: byteCount)
    bytes += byteCount
    return path
  }

  private func hasSpace(for byteCount: Int64, in folder: CacheFolder) throws(StoreError) -> Bool {
    let free = try StoreError.mapping { () throws(FileError) in
      try environment.files.space(of: folder.descriptor).free
    }
    // The free space excludes existing regions; it may or may not exclude regions that are being filled.
    return byteCount <= min(Self.budget - bytes, Int64(Double(free) * Self.maxFraction))
  }

  /// Marks the region as filled; it belongs to the host from now on.
  public func deliver(_ path: String, byteCount: Int64) {
    guard let region = regions[path] else { return }
    bytes += byteCount - region.byteCount
    regions[path] = Region(byteCount: byteCount, isDelivered: true)
  }

  /// Deletes a region that nobody needs.
  public func drop(_ path: String) {
    guard let region = regions.removeValue(forKey: path) else { return }
    bytes -= region.byteCount
    try? environment.files.remove(path)
  }

  /// Takes back a region from a host. Returns false if the path is not a delivered region.
  ///
  /// - Parameter isUnused: whether nobody reads the region any more, so that another image may get it. Its file is
  ///   deleted otherwise.
  public func release(_ path: String, isUnused: Bool = false, now: Instant = .now) -> Bool {
    guard regions[path]?.isDelivered == true else { return false }
    guard isUnused, let byteCount = try? clear(path), byteCount <= Self.freeBudget else {
      drop(path)
      return true
    }
    bytes -= regions.removeValue(forKey: path)?.byteCount ?? 0
    free.append(FreeRegion(path: path, byteCount: byteCount, since: now))
    dropFree(beyond: min(Self.freeBudget, Self.budget - bytes))
    return true
  }

  /// Takes back all delivered regions and returns their number.
  public func releaseAll(areUnused: Bool = false) -> Int {
    let paths = regions.filter(\.value.isDelivered).keys
    return paths.count { release($0, isUnused: areUnused) }
  }

  /// Takes a free region that an image of at most `byteCount` bytes fills to a quarter at least: that many bytes are for
  /// four channels, of which it may have one.
  private func reuse(for byteCount: Int64) -> String? {
    let fitting = free.indices.filter { free[$0].byteCount <= byteCount && free[$0].byteCount >= byteCount / 4 }
    guard let index = fitting.max(by: { free[$0].byteCount < free[$1].byteCount }), bytes + byteCount <= Self.budget
    else { return nil }
    let region = free.remove(at: index)
    regions[region.path] = Region(byteCount: byteCount)
    bytes += byteCount
    return region.path
  }

  /// Overwrites the file with zeros, so that the decoder of the next image cannot read this one. Returns its size.
  private func clear(_ path: String) throws(FileError) -> Int64 {
    let files = environment.files
    let file = try files.openForUpdating(path, in: FileSystem.workingDirectory)
    defer { closeFile(file) }
    let size = Int64(try files.status(of: file, path).st_size)
    var rest = size
    while rest > 0 {
      let piece = Self.zeros.prefix(Int(min(rest, Int64(Self.zeros.count))))
      try files.write(piece.count == Self.zeros.count ? Self.zeros : Array(piece), to: file, path)
      rest -= Int64(piece.count)
    }
    return size
  }

  private static let zeros = [UInt8](repeating: 0, count: 1 << 18)

  /// Deletes the oldest free regions until the others have at most so many bytes.
  private func dropFree(beyond limit: Int64) {
    var total = free.reduce(0) { $0 + $1.byteCount }
    while total > limit, !free.isEmpty {
      let region = free.removeFirst()
      total -= region.byteCount
      try? environment.files.remove(region.path)
    }
  }

  /// Deletes the free regions that no image has needed for `freeTime`. Returns whether none is left.
  public func dropFree(now: Instant = .now) -> Bool {
    while let first = free.first, first.since.advanced(by: Self.freeTime) <= now {
      free.removeFirst()
      try? environment.files.remove(first.path)
    }
    return free.isEmpty
  }

  /// The delivered regions.
  public var counts: Counts {
    let delivered = regions.values.filter(\.isDelivered)
    return Counts(regions: delivered.count, bytes: delivered.reduce(0) { $0 + $1.byteCount })
  }

  /// Removes the regions of dead processes.
  public func removeDead() { _ = home.removeDead() }

  /// Removes all regions.
  public func close() {
    home.close()
    (regions, free) = ([:], [])
    bytes = 0
  }
}

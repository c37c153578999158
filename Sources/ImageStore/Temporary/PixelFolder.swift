internal import Platform
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
  private var bytes: Int64 = 0

  private struct Region {
    var byteCount: Int64
    /// False while it is being filled.
    var isDelivered = false
  }

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

  /// Reserves space for a region of at most `byteCount` bytes and returns the path where it is to be created. `deliver`
  /// or `drop` must follow.
  ///
  /// Throws `overLimit` if the budget does not allow it, `diskFull` or `io`.
  public func reserve(byteCount: Int64) throws(StoreError) -> String {
    let folder = try StoreError.mapping(home.open)
    let free = try StoreError.mapping { () throws(FileError) in
      try environment.files.space(of: folder.descriptor).free
    }
    // The free space excludes existing regions; it may or may not exclude regions that are being filled.
    let maxBytes = min(Self.budget, bytes + Int64(Double(free) * Self.maxFraction))
    guard byteCount <= maxBytes - bytes else {
      throw StoreError(.overLimit, "\(regions.count) pixel regions with \(bytes) bytes leave no space; release some")
    }
    counter += 1
    let path = folder.path + "/\(counter).pixels"
    regions[path] = Region(byteCount: byteCount)
    bytes += byteCount
    return path
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

  /// Deletes a region that a host releases. Returns false if the path is not a delivered region.
  public func release(_ path: String) -> Bool {
    guard regions[path]?.isDelivered == true else { return false }
    drop(path)
    return true
  }

  /// Deletes all delivered regions and returns their number.
  public func releaseAll() -> Int {
    let paths = regions.filter(\.value.isDelivered).keys
    for path in paths { drop(path) }
    return paths.count
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
    home.close(removing: true)
    regions = [:]
    bytes = 0
  }
}

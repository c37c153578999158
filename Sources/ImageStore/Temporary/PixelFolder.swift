public import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Decoded images in shared memory, for hosts to map: each is a file of the host's until it says that it is done with
/// it.
///
/// They lie in a folder of this process in `/dev/shm/imageworker-UID`, where there is such a thing, and are gone when
/// the process ends, at the latest when the next one begins. What a host has mapped stays mapped.
public actor PixelFolder {
  public struct Counts: Sendable, Equatable {
    public var regions = 0
    public var bytes: Int64 = 0

    public init(regions: Int = 0, bytes: Int64 = 0) {
      self.regions = regions
      self.bytes = bytes
    }
  }

  /// Most bytes of all regions together, and of what is free the part that they may take.
  static let budget: Int64 = 1 << 30
  private static let largestPart = 0.5

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

  /// - Parameter parent: the folder of all such folders of this user; nil for the usual one.
  public init(parent: String? = nil, executor: ThreadExecutor, environment: StoreEnvironment = .system) {
    self.executor = executor
    self.environment = environment
    home = ProcessFolder(in: parent ?? Self.usualParent, environment: environment)
  }

  private static var usualParent: String {
    let name = "/imageworker-\(geteuid())"
    var status = stat()
    if stat("/dev/shm", &status) == 0, access("/dev/shm", W_OK) == 0 { return "/dev/shm" + name }
    if let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), directory.hasPrefix("/") {
      return directory + name
    }
    return ProcessFolder.usualParent + "-pixels"
  }

  /// Room for a region of at most so many bytes: the path where it is to be made. `deliver` or `drop` has to follow.
  ///
  /// Throws `noRoom` when the budget does not allow it, `diskFull` or `io`.
  public func makeRoom(for byteCount: Int64) throws(StoreError) -> String {
    let folder: CacheFolder
    let free: Int64
    do throws(FileError) {
      folder = try home.open()
      free = try environment.files.space(of: folder.descriptor).free
    } catch {
      throw StoreError(error)
    }
    // What is there has been taken from the free space already; what is being filled may have been or not.
    let most = min(Self.budget, bytes + Int64(Double(free) * Self.largestPart))
    guard byteCount <= most - bytes else {
      throw StoreError(.noRoom, "\(regions.count) pixel regions hold \(bytes) bytes, which is the limit; release some")
    }
    counter += 1
    let path = folder.path + "/\(counter).pixels"
    regions[path] = Region(byteCount: byteCount)
    bytes += byteCount
    return path
  }

  /// The region is filled, and the host's from now on.
  public func deliver(_ path: String, byteCount: Int64) {
    guard let region = regions[path] else { return }
    bytes += byteCount - region.byteCount
    regions[path] = Region(byteCount: byteCount, isDelivered: true)
  }

  /// The region is of no use to anybody.
  public func drop(_ path: String) {
    guard let region = regions.removeValue(forKey: path) else { return }
    bytes -= region.byteCount
    try? environment.files.remove(path)
  }

  /// Takes back what a host is done with. False for a path that is none of its regions.
  public func release(_ path: String) -> Bool {
    guard regions[path]?.isDelivered == true else { return false }
    drop(path)
    return true
  }

  /// Takes back all that was delivered. Returns how many there were.
  public func releaseAll() -> Int {
    let paths = regions.filter(\.value.isDelivered).keys
    for path in paths { drop(path) }
    return paths.count
  }

  /// What hosts have now.
  public var counts: Counts {
    let delivered = regions.values.filter(\.isDelivered)
    return Counts(regions: delivered.count, bytes: delivered.reduce(0) { $0 + $1.byteCount })
  }

  /// Removes what dead processes left.
  public func removeDead() { _ = home.removeDead() }

  /// Removes all regions.
  public func close() {
    home.close(removing: true)
    regions = [:]
    bytes = 0
  }
}

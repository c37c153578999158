internal import Platform
internal import Synchronization
internal import Text

/// Shared-memory coordination of the workers of one directory, without locks and disk access: a file, `board-3`, that
/// each worker maps.
///
/// It contains the leases of transfers (`Lease`), the bytes on disk that the index does not list yet, the numbers of
/// running decodes, the recent deliveries and the recent clears. It is not part of the stored data: a worker that
/// cannot map it works without it.
/// After a system crash any word may have any value, so no value is trusted, and additions wrap.
///
/// All fields are words with atomic access, so the table can be used from any thread. The peers reclaim the row of a
/// dead worker as soon as they can lock its lock file.
public final class PeerTable: Sendable {
  // Unsafe: atomic words, whose address is fixed until `deinit`.
  nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// This worker's row, counted from 1; nil if all rows are used. Without a row, the worker reads the table but has no
  /// leases.
  let row: UInt64?
  let identity: FileIdentity?

  let leaseCount = Atomic<Int>(0)
  /// The value of `joins` at the last survey, and whether there were peers then.
  private let joinsSurveyed = Atomic<UInt64>(0)
  private let hadPeers = Atomic<Bool>(false)
  /// The value of `joins` after this worker joined; nil if it had peers then. Also nil if more workers than rows have
  /// ever joined, since some of them may have no row.
  private let joinsWhenAlone: UInt64?

  /// The layout in words. Fields that are written by different workers have separate cache lines.
  enum Layout {
    static let joins = 0
    static let clears = 1
    static let wordsOfRow = 8
    static let rows: UInt64 = 255
    static let wordsOfBucket = 8
    static let buckets = 4096
    static let firstBucket = 2048
    static let clearings = 16
    static let wordsOfClearing = 128
    static let maxClearingBytes = (wordsOfClearing - 3) * 8
    static let firstClearing = firstBucket + buckets * wordsOfBucket
    static let firstDelivery = firstClearing + clearings * wordsOfClearing
    static let deliveries: UInt64 = 1 << 15
    static let words = firstDelivery + Int(deliveries)
    static let byteCount = words * 8

    /// The first word of a row, with the instance number and the process ID. The heartbeats, the unlisted bytes and the
    /// running decodes follow.
    static func row(_ row: UInt64) -> Int { Int(row) * wordsOfRow }
    static func bucket(_ number: UInt64) -> Int { firstBucket + Int(number) * wordsOfBucket }
    static func delivery(_ id: Int64) -> Int {
      // Ids count up, so neighbours use different words.
      firstDelivery + Int(UInt64(bitPattern: id ^ id >> 32) % deliveries)
    }
    static func clearing(_ number: UInt64) -> Int {
      firstClearing + Int(number % UInt64(clearings)) * wordsOfClearing
    }
  }

  static let path = "board-3"

  /// Maps the table, creates it if necessary, and acquires a row.
  init(in folder: CacheFolder, instance: Int32) throws(FileError) {
    let files = folder.files
    let file = try Self.open(in: folder, instance: instance)
    defer { close(file) }
    let memory = try files.map(file, Self.path, byteCount: Layout.byteCount)
    words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: Layout.words)
    identity = FileIdentity(Self.path, in: folder)
    let owner = UInt64(UInt32(bitPattern: instance)) << 32 | UInt64(UInt32(bitPattern: getpid()))
    row = Self.acquireRow(for: owner, in: words)
    let joins = words[Layout.joins].wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
    joinsWhenAlone = joins <= UInt64(Layout.rows) && Self.rows(in: words, except: row).isEmpty ? joins : nil
    recordPeers(!others.isEmpty, joins: joins)
  }

  /// Maps an existing table without acquiring a row: the process only looks, and the workers do not know of it.
  init(observing folder: CacheFolder) throws(FileError) {
    let file = try folder.files.openForUpdating(Self.path, in: folder.descriptor)
    defer { close(file) }
    guard try folder.files.status(of: file, Self.path).byteCount >= Layout.byteCount else {
      throw FileError(operation: .open, path: Self.path, code: EINVAL)
    }
    let memory = try folder.files.map(file, Self.path, byteCount: Layout.byteCount)
    words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: Layout.words)
    identity = FileIdentity(Self.path, in: folder)
    (row, joinsWhenAlone) = (nil, nil)
  }

  deinit {
    if let row { clear(row: row, of: words[Layout.row(row)].load(ordering: .relaxed)) }
    FileSystem.unmap(words, byteCount: Layout.byteCount)
  }

  /// Opens or creates the file. A new file is written completely before it gets its name: accessing a mapped page that
  /// has no disk space would end the process.
  private static func open(in folder: CacheFolder, instance: Int32) throws(FileError) -> Int32 {
    let files = folder.files
    do throws(FileError) {
      let file = try files.openForUpdating(path, in: folder.descriptor)
      if let status = try? files.status(of: file, path), status.byteCount >= Layout.byteCount { return file }
      // A system crash before the file was on disk leaves it short. No process has it mapped.
      closeFile(file)
      try files.remove(path, in: folder.descriptor)
    } catch {
      if !error.isMissing { throw error }
    }
    let draft = path + "." + hexadecimal(UInt64(instance), digits: 8)
    let file = try files.createFile(draft, in: folder.descriptor)
    defer {
      close(file)
      try? files.remove(draft, in: folder.descriptor)
    }
    try files.write([UInt8](repeating: 0, count: Layout.byteCount), to: file, draft)
    do throws(FileError) {
      try files.link(draft, to: path, in: folder.descriptor)
    } catch {
      // Another worker has created it meanwhile.
      if error.code != EEXIST { throw error }
    }
    return try files.openForUpdating(path, in: folder.descriptor)
  }

  private static func acquireRow(for owner: UInt64, in words: UnsafeMutablePointer<Atomic<UInt64>>) -> UInt64? {
    for row in 1...Layout.rows {
      let taken = words[Layout.row(row)].compareExchange(
        expected: 0, desired: owner, ordering: .sequentiallyConsistent)
      if taken.exchanged { return row }
    }
    return nil
  }

  // MARK: - Peers

  /// Whether another worker may be alive. A new worker is known at once; one that ended or died is removed by the next
  /// `detectDeadPeers` of the tier.
  public var hasPeers: Bool {
    joins != joinsSurveyed.load(ordering: .relaxed) || hadPeers.load(ordering: .relaxed)
  }

  /// Whether the file was truncated, so that this memory is private now.
  var isLost: Bool { joins == 0 }

  /// The number of workers that ever joined.
  var joins: UInt64 { words[Layout.joins].load(ordering: .sequentiallyConsistent) }

  /// Whether a worker has joined since the last survey.
  var isSurveyDue: Bool { joins != joinsSurveyed.load(ordering: .relaxed) }

  /// - Parameter joins: the value before the survey.
  func recordPeers(_ hasPeers: Bool, joins: UInt64) {
    hadPeers.store(hasPeers, ordering: .relaxed)
    joinsSurveyed.store(joins, ordering: .relaxed)
  }

  /// The rows of the peers with their instance numbers.
  var others: [(row: UInt64, instance: Int32)] { Self.rows(in: words, except: row) }

  private static func rows(
    in words: UnsafeMutablePointer<Atomic<UInt64>>, except ownRow: UInt64?
  ) -> [(row: UInt64, instance: Int32)] {
    (1...Layout.rows).compactMap { row in
      let owner = words[Layout.row(row)].load(ordering: .sequentiallyConsistent)
      return owner == 0 || row == ownRow ? nil : (row, instance(of: owner))
    }
  }

  /// Whether no other worker has been alive since this one joined.
  var hasAlwaysBeenAlone: Bool { joins == joinsWhenAlone }

  /// The instance number of the worker that has a row; 0 if none has.
  func instance(of row: UInt64) -> Int32 {
    Self.instance(of: words[Layout.row(row)].load(ordering: .relaxed))
  }

  private static func instance(of owner: UInt64) -> Int32 { Int32(truncatingIfNeeded: owner >> 32) }

  /// Clears the row and the leases of a dead worker. If two workers do so at once and a third acquires the row
  /// meanwhile, that one may lose a lease, which costs a transfer.
  func reclaim(row: UInt64, of instance: Int32) {
    let owner = words[Layout.row(row)].load(ordering: .sequentiallyConsistent)
    guard Self.instance(of: owner) == instance else { return }
    for index in Layout.firstBucket..<Layout.firstClearing where !index.isMultiple(of: Layout.wordsOfBucket) {
      let word = words[index].load(ordering: .relaxed)
      guard word != 0, Self.row(ofHolder: word) == row else { continue }
      _ = words[index].compareExchange(expected: word, desired: 0, ordering: .sequentiallyConsistent)
    }
    clear(row: row, of: owner)
  }

  private func clear(row: UInt64, of owner: UInt64) {
    let first = Layout.row(row)
    for word in first + 2...first + 3 { words[word].store(0, ordering: .sequentiallyConsistent) }
    _ = words[first].compareExchange(expected: owner, desired: 0, ordering: .sequentiallyConsistent)
  }

  // MARK: - Heartbeats

  public var hasLeases: Bool { leaseCount.load(ordering: .relaxed) > 0 }

  /// Increments the heartbeat. Must be called about once a second while this worker has leases: peers revoke the leases
  /// of a worker whose heartbeat stops.
  public func heartbeat() {
    guard let row else { return }
    words[Layout.row(row) + 1].wrappingAdd(1, ordering: .relaxed)
  }

  /// The number of heartbeats of a row.
  public func beats(of row: UInt64) -> UInt64 { words[Layout.row(row) + 1].load(ordering: .relaxed) }

  /// The process ID of a row.
  func process(of row: UInt64) -> Int32 {
    Int32(truncatingIfNeeded: words[Layout.row(row)].load(ordering: .relaxed))
  }

  // MARK: - Unlisted bytes

  /// Publishes the allocated bytes of this worker's files that are not in the index.
  func setUnlistedBytes(_ bytes: Int64) {
    guard let row else { return }
    words[Layout.row(row) + 2].store(UInt64(bitPattern: bytes), ordering: .sequentiallyConsistent)
  }

  /// The unlisted bytes of all peers, including those that died recently.
  var unlistedBytesOfPeers: Int64 {
    others.reduce(0) { sum, other in
      let bytes = words[Layout.row(other.row) + 2].load(ordering: .sequentiallyConsistent)
      return bytes < 1 << 48 ? sum + Int64(bytes) : sum
    }
  }
}

/// The decodes that run in the workers of the directory. Each worker has their number in its row, so those of a dead
/// worker count until its row is reclaimed.
extension PeerTable {
  /// More than any worker runs. A larger number is not true.
  private static let maxDecodes: UInt64 = 1 << 16

  /// Records the number of decodes that this worker runs.
  public func recordDecodes(_ count: Int) {
    guard let row else { return }
    words[Layout.row(row) + 3].store(UInt64(max(0, count)), ordering: .sequentiallyConsistent)
  }

  /// Records that this worker runs `count` decodes, of which the last begins now. False, and one less is recorded, if
  /// all workers together would run more than `limit`. The first decode of a worker always begins, so that no worker
  /// waits for one that has stopped.
  public func beginDecode(_ count: Int, limit: Int) -> Bool {
    // If two workers begin at the same moment, at least one of them sees the other.
    recordDecodes(count)
    guard row != nil, count > 1, hasPeers, count + decodesOfPeers > limit else { return true }
    recordDecodes(count - 1)
    return false
  }

  /// The decodes of all peers, including those that died recently.
  var decodesOfPeers: Int {
    others.reduce(0) { sum, other in
      let count = words[Layout.row(other.row) + 3].load(ordering: .sequentiallyConsistent)
      return count < Self.maxDecodes ? sum + Int(count) : sum
    }
  }
}

internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What the workers of one directory tell each other without a lock and without the disk: a file, `peerTable-1`, that each
/// of them has in its memory.
///
/// On it stands who transfers what (`Lease`), how much each worker has on disk that the index does not know of yet,
/// what was handed out a moment ago, and what has been cleared lately. It is no part of what is stored: a worker that
/// cannot have it goes without, and after a crash of the machine any word may hold any number: none is trusted, and
/// additions wrap.
///
/// All of it are words that are read and written atomically, so it can be used from any thread. What a worker leaves on
/// it when it dies is wiped off by the others, as soon as its lock file tells that it is dead.
public final class PeerTable: Sendable {
  // Unsafe: atomic words, which stay where they are until `deinit`.
  nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// This worker's row, from 1; nil where all are taken: then it looks on, and has no leases.
  let row: UInt64?
  let identity: FileIdentity?

  let leaseCount = Atomic<Int>(0)
  /// The number of workers that ever came when it was last looked who is there, and whether there was another then.
  private let joinsSurveyed = Atomic<UInt64>(0)
  private let hadCompany = Atomic<Bool>(false)
  /// The number of workers that ever came, this one the last, where there was no other then. Nil where there have been
  /// more than rows, since then not all are seen.
  private let joinsWhenAlone: UInt64?

  /// Where what stands, in words. What must not get into each other's way has a cache line of its own.
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
    static let longestClearing = (wordsOfClearing - 3) * 8
    static let firstClearing = firstBucket + buckets * wordsOfBucket
    static let firstDelivery = firstClearing + clearings * wordsOfClearing
    static let deliveries: UInt64 = 1 << 15
    static let words = firstDelivery + Int(deliveries)
    static let byteCount = words * 8

    /// The words of a worker: its instance number and process, its beats, its bytes.
    static func row(_ row: UInt64) -> Int { Int(row) * wordsOfRow }
    static func bucket(_ number: UInt64) -> Int { firstBucket + Int(number) * wordsOfBucket }
    static func delivery(_ id: Int64) -> Int {
      // Ids count up: neighbours fall on different words.
      firstDelivery + Int(UInt64(bitPattern: id ^ id >> 32) % deliveries)
    }
    static func clearing(_ number: UInt64) -> Int {
      firstClearing + Int(number % UInt64(clearings)) * wordsOfClearing
    }
  }

  static let path = "board-1"

  /// Puts up this worker's row, on a board that is made if there is none.
  init(in folder: CacheFolder, instance: Int32) throws(FileError) {
    let files = folder.files
    let file = try Self.open(in: folder, instance: instance)
    defer { close(file) }
    let memory = try files.map(file, Self.path, byteCount: Layout.byteCount)
    words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: Layout.words)
    identity = FileIdentity(Self.path, in: folder)
    let owner = UInt64(UInt32(bitPattern: instance)) << 32 | UInt64(UInt32(bitPattern: getpid()))
    row = Self.takeRow(for: owner, in: words)
    let joins = words[Layout.joins].wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
    joinsWhenAlone = joins <= UInt64(Layout.rows) && Self.rows(in: words, but: row).isEmpty ? joins : nil
    noteCompany(!others.isEmpty, joins: joins)
  }

  deinit {
    if let row { clear(row: row, of: words[Layout.row(row)].load(ordering: .relaxed)) }
    FileSystem.unmap(words, byteCount: Layout.byteCount)
  }

  /// A new one is whole before it has its name, and all its blocks are there: memory that the disk has no room for
  /// would be the end of the process.
  private static func open(in folder: CacheFolder, instance: Int32) throws(FileError) -> Int32 {
    let files = folder.files
    do throws(FileError) {
      let file = try files.openForUpdating(path, in: folder.descriptor)
      if let status = try? files.status(of: file, path), status.byteCount >= Layout.byteCount { return file }
      // Of a machine that crashed before it was on the disk: nobody has it in memory.
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
    let nothing = [UInt8](repeating: 0, count: Layout.byteCount)
    let written = nothing.withUnsafeBytes { bytes in
      Result { () throws(FileError) in try files.write(bytes, to: file, draft) }
    }
    try written.get()
    do throws(FileError) {
      try files.link(draft, to: path, in: folder.descriptor)
    } catch {
      // Another worker was faster.
      if error.code != EEXIST { throw error }
    }
    return try files.openForUpdating(path, in: folder.descriptor)
  }

  private static func takeRow(for owner: UInt64, in words: UnsafeMutablePointer<Atomic<UInt64>>) -> UInt64? {
    for row in 1...Layout.rows {
      let taken = words[Layout.row(row)].compareExchange(
        expected: 0, desired: owner, ordering: .sequentiallyConsistent)
      if taken.exchanged { return row }
    }
    return nil
  }

  // MARK: - Who is there

  /// Whether another worker may be there. One that has just come is known at once, one that left or died by the next
  /// `detectDeadPeers` of its tier.
  public var hasPeers: Bool {
    joins != joinsSurveyed.load(ordering: .relaxed) || hadCompany.load(ordering: .relaxed)
  }

  /// Whether the file was cut short, and this memory has become this worker's own.
  var isLost: Bool { joins == 0 }

  /// How many workers ever came.
  var joins: UInt64 { words[Layout.joins].load(ordering: .sequentiallyConsistent) }

  /// Whether a worker has come since it was last looked who is there.
  var isSurveyDue: Bool { joins != joinsSurveyed.load(ordering: .relaxed) }

  /// - Parameter joins: from before it was looked.
  func noteCompany(_ hasPeers: Bool, joins: UInt64) {
    hadCompany.store(hasPeers, ordering: .relaxed)
    joinsSurveyed.store(joins, ordering: .relaxed)
  }

  /// The rows of other workers, by their numbers, with the workers' instance numbers.
  var others: [(row: UInt64, instance: Int32)] { Self.rows(in: words, but: row) }

  private static func rows(
    in words: UnsafeMutablePointer<Atomic<UInt64>>, but own: UInt64?
  ) -> [(row: UInt64, instance: Int32)] {
    (1...Layout.rows).compactMap { row in
      let owner = words[Layout.row(row)].load(ordering: .sequentiallyConsistent)
      return owner == 0 || row == own ? nil : (row, instance(of: owner))
    }
  }

  /// Whether there has been no other worker since this one came.
  var hasAlwaysBeenAlone: Bool { joins == joinsWhenAlone }

  private static func instance(of owner: UInt64) -> Int32 { Int32(truncatingIfNeeded: owner >> 32) }

  /// Wipes off what a dead worker left. Where two do so at once and a third takes the row meanwhile, that one may lose
  /// a lease, which costs a transfer.
  func reclaim(row: UInt64, of instance: Int32) {
    let owner = words[Layout.row(row)].load(ordering: .sequentiallyConsistent)
    guard Self.instance(of: owner) == instance else { return }
    for place in Layout.firstBucket..<Layout.firstClearing where !place.isMultiple(of: Layout.wordsOfBucket) {
      let word = words[place].load(ordering: .relaxed)
      guard word != 0, Self.row(ofHolder: word) == row else { continue }
      _ = words[place].compareExchange(expected: word, desired: 0, ordering: .sequentiallyConsistent)
    }
    clear(row: row, of: owner)
  }

  private func clear(row: UInt64, of owner: UInt64) {
    let first = Layout.row(row)
    words[first + 2].store(0, ordering: .sequentiallyConsistent)
    _ = words[first].compareExchange(expected: owner, desired: 0, ordering: .sequentiallyConsistent)
  }

  // MARK: - Signs of life

  /// Whether this worker has leases.
  public var hasLeases: Bool { leaseCount.load(ordering: .relaxed) > 0 }

  /// To be called about once a second by a worker that has leases: one that has stopped loses them.
  public func heartbeat() {
    guard let row else { return }
    words[Layout.row(row) + 1].wrappingAdd(1, ordering: .relaxed)
  }

  /// How often the worker of a row has beaten.
  public func beats(of row: UInt64) -> UInt64 { words[Layout.row(row) + 1].load(ordering: .relaxed) }

  /// The process of a row.
  func process(of row: UInt64) -> Int32 {
    Int32(truncatingIfNeeded: words[Layout.row(row)].load(ordering: .relaxed))
  }

  // MARK: - Bytes on their way

  /// Allocated bytes of this worker's files that the index does not know of.
  func setUnlistedBytes(_ bytes: Int64) {
    guard let row else { return }
    words[Layout.row(row) + 2].store(UInt64(bitPattern: bytes), ordering: .sequentiallyConsistent)
  }

  /// The same of all the others, those that died a moment ago included.
  var unlistedBytesOfOthers: Int64 {
    others.reduce(0) { sum, other in
      let bytes = words[Layout.row(other.row) + 2].load(ordering: .sequentiallyConsistent)
      return bytes < 1 << 48 ? sum + Int64(bytes) : sum
    }
  }
}

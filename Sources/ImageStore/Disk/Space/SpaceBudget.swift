/// Decides how many bytes the disk tier must evict, and for which reason. Pure: sizes, times and the measured free
/// space are passed in.
///
/// The tier stays within its limit, and leaves `minFreeFraction` of the file system free. The free space is measured
/// again after 5 s or after a number of written bytes, which is smaller the nearer the minimum is.
struct SpaceBudget {
  /// The maximum number of bytes written before the free space is measured again.
  private static let maxUncheckedBytes: Int64 = 1 << 24
  /// How long a measurement is valid, in seconds.
  private static let maxMeasurementAge = 5

  /// The maximum allocated bytes of image and temporary files.
  var limit: Int64
  var minFreeFraction: Double { didSet { measurement = nil } }
  /// How many bytes the tier may use without leaving less than the minimum free.
  private var spaceLimit = Int64.max
  /// When the free space was measured, and how many bytes may be written before it is measured again.
  private var measurement: (at: Int, budget: Int64)?
  /// Allocated bytes of the temporary files of spools, by id.
  private var reservations: [Int64: Int64] = [:]
  private(set) var evicted = EvictionStatistics()
  private(set) var cursor = Cursor()
  /// Whether files were evicted because the index found the disk full, and no commit has succeeded since.
  var hasEvictedForCommit = false

  init(limit: Int64, minFreeFraction: Double) {
    self.limit = limit
    self.minFreeFraction = minFreeFraction
  }

  /// The maximum allocated bytes of all partial files.
  var partialLimit: Int64 { min(limit, spaceLimit) / 4 }

  /// The maximum allocated size of a file: a tenth of the limit, so that one image cannot displace all others. One
  /// block is always allowed.
  func maxFileBytes(blockSize: Int64) -> Int64 { max(limit / 10, min(blockSize, limit)) }

  // MARK: Free space

  /// Whether the free space must be measured before `bytes` are written. Until `recordSpace`, it then limits nothing.
  mutating func mustMeasure(adding bytes: Int64, now: Int) -> Bool {
    if let last = measurement, now - last.at < Self.maxMeasurementAge, now >= last.at, bytes <= last.budget {
      measurement?.budget -= bytes
      return false
    }
    measurement = (now, Self.maxUncheckedBytes)
    spaceLimit = .max
    return minFreeFraction > 0
  }

  /// - Parameters:
  ///   - free: the free bytes of the file system, of `total`.
  ///   - used: the bytes that the tier uses.
  ///   - bytes: the bytes that are written next.
  mutating func recordSpace(free: Int64, total: Int64, used: Int64, adding bytes: Int64, now: Int) {
    let spare = free - Int64(minFreeFraction * Double(total))
    spaceLimit = max(0, used + spare)
    measurement = (now, min(Self.maxUncheckedBytes, max(0, spare / 2 - bytes)))
  }

  /// Makes `mustMeasure` return true next time.
  mutating func expireMeasurement() { measurement = nil }

  // MARK: Reservations

  var reservedBytes: Int64 { reservations.values.reduce(0, +) }
  var hasReservations: Bool { !reservations.isEmpty }

  /// The bytes reserved for the temporary file of a spool; nil if there is no such spool.
  subscript(reservation id: Int64) -> Int64? {
    get { reservations[id] }
    set { reservations[id] = newValue }
  }

  // MARK: Eviction

  /// Bytes to be evicted.
  struct Demand {
    let bytes: Int64
    let reason: EvictionStatistics.Reason
    /// How many bytes more may be evicted, so that the next stores need not evict again.
    var spare: Int64 = 0
    var freed: Int64 = 0

    var isMet: Bool { freed >= bytes }

    /// Whether a file of this size is to be evicted, too.
    func includes(_ allocated: Int64) -> Bool { !isMet || allocated > 0 && freed + allocated <= bytes + spare }
  }

  /// The eviction that makes `bytes` more fit, with 1 % of the limit to spare if the limit is the reason. Nil if they
  /// fit already.
  func demand(adding bytes: Int64, used: Int64) -> Demand? {
    let excess = used + bytes - min(limit, spaceLimit)
    if excess <= 0 { return nil }
    return spaceLimit < limit
      ? Demand(bytes: excess, reason: .freeSpace) : Demand(bytes: excess, reason: .limit, spare: limit / 100)
  }

  /// The eviction after the system has reported a full disk: 4 MB.
  static let demandOfFullDisk = Demand(bytes: 1 << 22, reason: .diskFull)

  mutating func recordEviction(_ reason: EvictionStatistics.Reason) { evicted.count(reason) }

  /// The position up to which eviction has found only retained rows, so that it does not scan them again before one of
  /// them can be evicted. Rows used later come after it in the order.
  struct Cursor {
    fileprivate(set) var upTo: (usedAt: Int, id: Int64) = (.min, .min)
    /// When the first of the skipped rows may be evicted.
    fileprivate(set) var until = Int.max
    fileprivate var lastScan = Int.min
  }

  /// Starts a scan: at the cursor, or from the start if a skipped row may be evicted now or the clock was set back.
  mutating func startScan(now: Int) {
    if now >= cursor.until || now < cursor.lastScan { cursor = Cursor() }
    cursor.lastScan = now
  }

  /// - Parameter until: when the row may be evicted.
  mutating func skip(_ record: FileRecord, until: Int) {
    cursor.upTo = (record.usedAt, record.id)
    cursor.until = min(cursor.until, until)
  }

  /// Makes the next scan start from the first row.
  mutating func resetCursor() { cursor = Cursor() }
}

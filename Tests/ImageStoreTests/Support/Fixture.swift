import Foundation
import HTTPTypes
import Platform
import Testing
import Threads

@testable import ImageStore

/// A separate directory, a clock that only the test advances, and an executor, for tests that access the disk.
final class Fixture: Sendable {
  let directory: String
  let executor = ThreadExecutor(name: "disk")
  let clock = Locked(1_700_000_000)
  let warnings = Locked<[String]>([])
  let boot = Locked<String?>("first")
  let chance: Locked<SeededChance>

  init(seed: UInt64 = .random(in: .min ... .max)) {
    directory = NSTemporaryDirectory() + "/imagestore-" + UUID().uuidString
    chance = Locked(SeededChance(state: seed))
    mkdir(directory, 0o700)
  }

  deinit {
    executor.stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  var now: Int { clock.withLock { $0 } }

  func advance(_ seconds: Int) { clock.withLock { $0 += seconds } }

  func environment(_ files: FileSystem = FileSystem()) -> StoreEnvironment {
    StoreEnvironment(
      now: { [clock] in clock.withLock { $0 } }, random: { [chance] in chance.withLock { $0.next() } }, files: files,
      boot: { [boot] in boot.withLock { $0 } })
  }

  /// A tier that is not open yet.
  func makeTier(
    limit: Int64 = 1 << 30, minFree: Double = 0, verify: DiskTier.Verification = .always,
    mode: DiskTier.Mode = .readWrite, files: FileSystem = FileSystem(), executor: ThreadExecutor? = nil
  ) -> DiskTier {
    DiskTier(
      directory: directory, namespace: "test", limit: limit, minFreeFraction: minFree, verify: verify, mode: mode,
      executor: executor ?? self.executor, environment: environment(files),
      onWarning: { [warnings] warning in warnings.withLock { $0.append(warning.message) } })
  }

  func openTier(
    limit: Int64 = 1 << 30, minFree: Double = 0, verify: DiskTier.Verification = .always,
    mode: DiskTier.Mode = .readWrite, files: FileSystem = FileSystem()
  ) async throws -> DiskTier {
    let tier = makeTier(limit: limit, minFree: minFree, verify: verify, mode: mode, files: files)
    try await tier.open()
    return tier
  }

  func draft(
    _ key: String, variant: String = "", partition: String = "", format: ImageFormat? = .jpeg, expiresAt: Int? = nil,
    varying: HeaderFields = [:], url: String? = nil
  ) -> StoredResponse {
    StoredResponse(
      key: key, partition: partition, variant: variant, url: url ?? key,
      headers: ["etag": "\"\(key)\"", "content-type": "image/jpeg"], varyingHeaders: varying, requestTime: now,
      responseTime: now, storedAt: now, validatedAt: now, expiresAt: expiresAt ?? now + 3600,
      content: ImageDescription(format.map { ImageHeader($0) }, mediaType: "image/jpeg"))
  }

  /// The image files and temporary files in the shards, relative to the folder of the namespace.
  var imageFiles: Set<String> {
    let root = directory + "/test/"
    let paths = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
    return Set(
      paths.filter { path in
        path.contains("/") && !path.hasPrefix("workers/")
      })
  }

  /// The size of the index without its write-ahead log, in bytes.
  var indexSize: Int {
    get throws {
      let status = try FileManager.default.attributesOfItem(atPath: directory + "/test/index.sqlite")
      return status[.size] as? Int ?? 0
    }
  }

  /// The allocated bytes of the image files, as counted against the limit.
  var bytesOnDisk: Int64 {
    imageFiles.reduce(0) { sum, path in
      var status = stat()
      return stat(directory + "/test/" + path, &status) == 0 ? sum + (Int64(status.st_size) + 4095) / 4096 * 4096 : sum
    }
  }
}

/// A random generator with a seed (SplitMix64).
struct SeededChance: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}

extension DiskTier {
  func store(_ bytes: [UInt8], as draft: StoredResponse, delivered: Bool = false) throws(StoreError) -> StoredResponse {
    try store(.bytes(bytes), as: draft, delivered: delivered)
  }

  /// Ends like a killed process: nothing is committed, and the lock file stays without its lock.
  func die() {
    session.closeFolder()
    // The sweep holds the locks of the dead workers.
    sweep = nil
    session.isClosed = true
  }

  /// Runs the sweep to its end, once no other worker is alive.
  func sweepAll() {
    sweepOnce()
    // A child process that another test forks also holds the lock of a dead worker until it executes its program.
    let deadline = Instant.now + .seconds(60)
    while hasPeers, .now < deadline {
      usleep(5000)
      sweepOnce()
    }
  }

  func sweepOnce() {
    schedule.surveyAt = .distantPast
    _ = runMaintenance()
    while sweep != nil { _ = runMaintenance() }
  }

  func commitNow() { commit() }
}

extension Database {
  /// Undoes the change of version 6 of the index.
  func dropVersion6() throws {
    try execute("DROP INDEX responses_by_url; CREATE INDEX responses_by_url ON responses(url_hash)")
  }

  /// Adds the pins of versions 5 and 6 of the index.
  func addPins() throws {
    try execute(
      """
      DROP TRIGGER response_added; DROP TRIGGER response_removed;
      DROP INDEX responses_by_storing; DROP INDEX responses_by_expiry; DROP INDEX responses_by_use;
      ALTER TABLE responses ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE totals ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE totals ADD COLUMN pinned_bytes INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE totals ADD COLUMN disk_limit INTEGER;
      CREATE INDEX responses_by_storing ON responses(pinned, stored_at);
      CREATE INDEX responses_by_expiry ON responses(pinned, expires_at);
      CREATE INDEX responses_by_use ON responses(pinned, used_at);
      CREATE TABLE pins(
        key TEXT NOT NULL, partition TEXT NOT NULL, variant TEXT NOT NULL, url TEXT, url_hash INTEGER NOT NULL,
        host TEXT NOT NULL, port INTEGER NOT NULL, PRIMARY KEY(key, partition, variant)) WITHOUT ROWID;
      CREATE TRIGGER pin_added AFTER INSERT ON pins BEGIN
        UPDATE responses SET pinned = 1
        WHERE key = new.key AND partition = new.partition AND variant = new.variant; END;
      CREATE TRIGGER response_pinned AFTER UPDATE OF pinned ON responses BEGIN
        UPDATE totals SET pinned = pinned + new.pinned - old.pinned; END;
      CREATE TRIGGER response_added AFTER INSERT ON responses BEGIN
        UPDATE OR FAIL totals SET entries = entries + 1, pinned = pinned + new.pinned; END;
      CREATE TRIGGER response_removed AFTER DELETE ON responses BEGIN
        UPDATE OR FAIL totals SET entries = entries - 1, pinned = pinned - old.pinned; END;
      INSERT INTO pins SELECT key, partition, variant, url, url_hash, host, port FROM responses;
      """)
  }

  /// Removes the additions of version 4 of the index.
  func dropVersion4() throws {
    try execute(
      """
      DROP TRIGGER response_added; DROP TRIGGER response_removed;
      ALTER TABLE totals DROP COLUMN variants;
      CREATE TRIGGER response_added AFTER INSERT ON responses BEGIN
        UPDATE OR FAIL totals SET entries = entries + 1, bytes = bytes + new.allocated; END;
      CREATE TRIGGER response_removed AFTER DELETE ON responses BEGIN
        UPDATE OR FAIL totals SET entries = entries - 1, bytes = bytes - old.allocated; END;
      """)
  }

  /// Removes the additions of version 3 of the index.
  func dropVersion3() throws {
    let sources = ["digest", "bytes", "format", "width", "height"].map { "source_" + $0 }
    for column in ["boot", "checked", "thumbhash", "color"] + sources {
      try execute("ALTER TABLE responses DROP COLUMN \(column)")
    }
  }
}

func bytes(_ count: Int, _ fill: UInt8 = 7) -> [UInt8] { [UInt8](repeating: fill, count: count) }

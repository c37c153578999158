import Foundation
import HTTPTransport
import HTTPTypes
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// A disk cache and a scratch folder in a temporary directory, on a thread that can be blocked.
final class DiskFixture: Sendable {
  let directory: String
  let executor = ThreadExecutor(name: "disk")
  let tier: DiskTier
  let scratch: ScratchFolder
  let pixels: PixelFolder
  let storage: DiskServices
  /// Called before each operation of the cache and of the scratch folder. Returns the `errno` to fail with.
  let cacheFault = Locked<(@Sendable (FileSystem.Operation) -> Int32?)?>(nil)
  let scratchFault = Locked<(@Sendable (FileSystem.Operation) -> Int32?)?>(nil)

  /// The current time in Unix seconds.
  let time = Locked(1_700_000_000)

  init(limit: Int64 = 1 << 30) throws {
    let now: @Sendable () -> Int = { [time] in time.withLock { $0 } }
    directory = NSTemporaryDirectory() + "/loading-" + UUID().uuidString
    let environment = { (fault: Locked<(@Sendable (FileSystem.Operation) -> Int32?)?>) in
      StoreEnvironment(
        now: now, random: { .random(in: .min ... .max) },
        files: FileSystem { operation in fault.withLock { $0 }?(operation) })
    }
    tier = DiskTier(
      directory: directory, namespace: "test", limit: limit, minFreeFraction: 0, verify: .never, executor: executor,
      environment: environment(cacheFault), onWarning: { _ in })
    scratch = ScratchFolder(
      parent: directory + "/scratch", executor: executor, environment: environment(scratchFault))
    pixels = PixelFolder(
      parent: directory + "/pixels", executor: executor, environment: environment(scratchFault))
    storage = DiskServices(
      directory: directory, executor: executor, tier: tier, readOnlyTiers: [], scratch: scratch, pixels: pixels,
      now: now)
    try storage.open()
  }

  deinit {
    storage.close()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The cache of loads on this disk.
  @LoadingActor
  func makeCache() -> CacheCoordinator {
    CacheCoordinator(storage: storage, peers: PeerCoordinator(storage: storage), settings: LoaderSettings())
  }

  /// Runs `work` on the disk thread and waits for it.
  func onDisk<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) throws -> Result {
    let result = Locked<Swift.Result<Result, any Error>?>(nil)
    executor.run {
      let outcome = Swift.Result { try work() }
      result.withLock { $0 = outcome }
      result.notify()
    }
    return try result.wait { $0 }!.get()
  }

  /// Waits until the work on the disk thread, and its immediate consequences, are done.
  func settle() async throws {
    try onDisk {}
    await { @LoadingActor in }()
  }

  /// Stores `Scene.image` in the disk tier.
  func storeImage() throws -> Candidate {
    let stored = try onDisk { [tier] in
      try tier.assumeIsolatedThrowing { tier throws(StoreError) in
        try tier.store(.bytes(Scene.image), as: Scene.response, delivered: false)
      }
    }
    return Candidate(response: stored, bytes: nil, location: .disk)
  }

  /// Blocks the disk thread until the gate is opened.
  func closeGate() -> Gate {
    let gate = Gate()
    executor.run { gate.pass() }
    return gate
  }

  /// The temporary and scratch files.
  func files(under folder: String) -> [String] {
    let root = directory + "/" + folder
    let paths = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
    return paths.map { root + "/" + $0 }.filter { path in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && !isDirectory.boolValue
        && !path.contains("/workers/") && !path.contains("index.sqlite") && !path.hasSuffix("/board-3")
        && !path.hasSuffix("/lock")
    }
  }

  func makeSink(keeping: Bool = true, expected: Int64? = nil, onRoom: @escaping @Sendable () -> Void = {}) -> BodySink {
    storage.makeSink(keeping: keeping, expected: expected, onRoom: onRoom)
  }
}

/// A gate at which threads wait until it is opened.
final class Gate: Sendable {
  private let isOpen = Locked(false)

  func pass() { _ = isOpen.wait { $0 ? () : nil } }

  func open() {
    isOpen.withLock { $0 = true }
    isOpen.notify()
  }
}

/// A value that arrives once, or several in turn, and can be waited for.
final class Promise<Value: Sendable>: Sendable {
  private let values = Locked<[Value]>([])

  func fulfil(_ value: Value) {
    values.withLock { $0.append(value) }
    values.notify()
  }

  var value: Value { values.wait { $0.first }! }
  var count: Int { values.withLock { $0.count } }
  /// Waits until so many values have arrived, and returns all.
  func all(atLeast count: Int) -> [Value] { values.wait { $0.count >= count ? $0 : nil }! }
  var all: [Value] { values.withLock { $0 } }
}

/// A count that can be waited for.
final class Tally: Sendable {
  private let count = Locked(0)

  func add() {
    count.withLock { $0 += 1 }
    count.notify()
  }

  var value: Int { count.withLock { $0 } }

  func wait(for expected: Int) { _ = count.wait { $0 >= expected ? () : nil } }
}

extension BodySink {
  func append(_ bytes: some Sequence<UInt8>) -> Verdict { Array(bytes).withUnsafeBytes { append($0) } }

  /// Ends the body and waits until all of it is written.
  func finish() -> Result<SpooledBody, StoreError> {
    let promise = Promise<Result<SpooledBody, StoreError>>()
    finish { promise.fulfil($0) }
    return promise.value
  }
}

/// Bytes that reveal lost, doubled or misplaced pieces.
func body(_ count: Int, seed: UInt64 = 3) -> [UInt8] {
  var chance = SeededChance(state: seed)
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + 8)
  while bytes.count < count { withUnsafeBytes(of: chance.next()) { bytes.append(contentsOf: $0) } }
  return Array(bytes.prefix(count))
}

extension Sequence where Element == UInt8 {
  /// Splits the bytes into pieces as the transport does.
  func pieces(of size: Int = 16 << 10) -> [ArraySlice<UInt8>] {
    let all = Array(self)
    return stride(from: 0, to: all.count, by: size).map { all[$0..<Swift.min($0 + size, all.count)] }
  }
}

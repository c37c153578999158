import Foundation
import ImageCodec
import Testing

/// A pool of real decoder processes and a directory for their output. Both are removed with it, except a shared pool.
final class Decoding: Sendable {
  let pool: DecoderPool
  let directory: String
  private let isShared: Bool

  /// Started once for all tests that need no settings, because starting a process takes longer than most tests.
  private static let sharedPool = DecoderPool(
    DecoderSettings(count: ProcessInfo.processInfo.activeProcessorCount, timeout: .seconds(3600)))

  /// - Parameter pool: a pool that others use as well.
  private init(pool: DecoderPool) throws {
    (self.pool, isShared, directory) = (pool, true, try Self.newDirectory())
  }

  static func shared() throws -> Decoding { try Decoding(pool: sharedPool) }

  private static func newDirectory() throws -> String {
    let directory = FileManager.default.temporaryDirectory.appending(path: "codec-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    return directory
  }

  init(
    count: Int = 1, timeout: Duration = .seconds(3600), elapsedLimit: Duration? = nil, budget: Int = 100_000_000,
    memory: Int = 2 << 30, executable: String? = nil, lifetime: Int = 1, idleTime: Duration = .seconds(3600),
    sharedDecodes: (any SharedDecodes)? = nil, onFailure: @escaping @Sendable (DecoderFailure) -> Void = { _ in }
  ) throws {
    (isShared, directory) = (false, try Self.newDirectory())
    pool = DecoderPool(
      DecoderSettings(
        count: count, timeout: timeout, elapsedLimit: elapsedLimit, executable: executable, pixelBudget: budget,
        memoryLimit: memory, idleTime: idleTime, lifetime: lifetime), sharedDecodes: sharedDecodes, onFailure: onFailure
    )
  }

  deinit {
    if !isShared { pool.shutDown() }
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The limit at which the task was ended; nil if it was not.
  func limit(of task: DecodeTask) async -> DecodeTimeout.Limit? {
    if case .failure(.timedOut(let timeout)) = await run(task) { timeout.limit } else { nil }
  }

  func newPath() -> String { "\(directory)/\(UUID().uuidString)" }

  func formats() async -> CodecFormats {
    await withCheckedContinuation { continuation in pool.formats { continuation.resume(returning: $0) } }
  }

  func run(_ task: DecodeTask) async -> Result<Decoded, DecodeError> {
    await withCheckedContinuation { continuation in
      pool.submit(task, priority: 0) { result, _ in continuation.resume(returning: result) }
    }
  }

  /// The task for a whole file in memory.
  func task(
    _ bytes: [UInt8], _ output: DecodeTask.Output, _ transform: Transform = Transform(), placeholder: Bool = false,
    maxPixels: Int = 100_000_000
  ) throws -> DecodeTask {
    DecodeTask(
      source: .bytes(bytes), header: try Self.header(bytes), transform: transform, output: output,
      wantsPlaceholder: placeholder, maxPixels: maxPixels)
  }

  static func header(_ bytes: [UInt8]) throws -> ImageHeader {
    guard case .image(let format) = Recognition(prefix: bytes, isComplete: true) else { throw NotAnImage() }
    return try ImageHeader.read(bytes, format: format)
  }

  struct NotAnImage: Error {}

  /// The pixels, or the error.
  func pixels(_ bytes: [UInt8], _ transform: Transform = Transform()) async throws -> Pixels {
    let path = newPath()
    let decoded = try await run(try task(bytes, .pixels(path), transform)).get()
    let content = try Data(contentsOf: URL(filePath: path))
    #expect(content.count == decoded.width * decoded.height * decoded.channels)
    return Pixels(width: decoded.width, height: decoded.height, channels: decoded.channels, bytes: [UInt8](content))
  }

  /// Another file of the same picture.
  func encoded(_ bytes: [UInt8], _ transform: Transform = Transform()) async throws -> (Decoded, [UInt8]) {
    let path = newPath()
    let decoded = try await run(try task(bytes, .encoded(path), transform)).get()
    return (decoded, [UInt8](try Data(contentsOf: URL(filePath: path))))
  }

  func encoded(_ bytes: [UInt8], as format: ImageFormat, quality: Int = 95) async throws -> [UInt8] {
    try await encoded(bytes, .with { ($0.format, $0.quality) = (format, quality) }).1
  }
}

struct Pixels: Equatable {
  var width: Int
  var height: Int
  var channels: Int
  var bytes: [UInt8]

  subscript(x: Int, y: Int) -> [Int] {
    (0..<channels).map { Int(bytes[(y * width + x) * channels + $0]) }
  }

  /// The mean difference of samples.
  func meanDifference(from other: Pixels) -> Double {
    guard bytes.count == other.bytes.count else { return .infinity }
    let sum = zip(bytes, other.bytes).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
    return Double(sum) / Double(max(1, bytes.count))
  }
}

extension Transform {
  static func with(_ change: (inout Transform) -> Void) -> Transform {
    var transform = Transform()
    change(&transform)
    return transform
  }
}

func isNear(_ left: [Int], _ right: [Int], within tolerance: Int = 6) -> Bool {
  left.count == right.count && zip(left, right).allSatisfy { abs($0 - $1) <= tolerance }
}

extension DecodeError {
  var isTimeout: Bool { if case .timedOut = self { true } else { false } }
}

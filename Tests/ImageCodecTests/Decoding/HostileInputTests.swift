import Foundation
import Testing

@testable import ImageCodec

/// A small random generator (SplitMix64), so that a failure can be repeated from its seed.
private struct Seeded: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}

@Suite struct `Hostile images` {
  /// `IMAGE_FUZZ_SEED` repeats a run, `IMAGE_FUZZ_ROUNDS` makes it longer.
  private static let environment = ProcessInfo.processInfo.environment
  private static let seed = environment["IMAGE_FUZZ_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64.max)
  private static let rounds = environment["IMAGE_FUZZ_ROUNDS"].flatMap(Int.init) ?? 100_000

  @Test func `parsing mutated and truncated images never traps and always ends`() {
    print("IMAGE_FUZZ_SEED=\(Self.seed)")
    var random = Seeded(state: Self.seed)
    let samples = Sample.all.filter { $0.bytes.count < 20_000 }
    var (read, refused) = (0, 0)
    for round in 0..<Self.rounds {
      let sample = samples[round % samples.count]
      let bytes = Self.mutated(sample.bytes, &random)
      let format =
        if case .image(let format) = Recognition(prefix: bytes, isComplete: Bool.random(using: &random)) { format } else
        {
          sample.format
        }
      do throws(ImageHeaderError) {
        let header = try ImageHeader.read(bytes, format: format)
        read += 1
        let sides = [header.width ?? 1, header.height ?? 1]
        let geometry = try? Transform().geometry(of: header)
        if !sides.allSatisfy((1..<(1 << 32)).contains) || header.frames < 1 || !(1...8).contains(header.orientation)
          || (geometry == nil) != (header.width == nil)
        {
          Issue.record("seed \(Self.seed), round \(round), \(sample.name): \(header)")
        }
      } catch {
        refused += 1
      }
    }
    #expect(read > Self.rounds / 10 && refused > Self.rounds / 10)
  }

  @Test func `the containers of mutated images are read as by a naive reader, and nothing is made up`() {
    print("IMAGE_FUZZ_SEED=\(Self.seed)")
    var random = Seeded(state: Self.seed)
    let samples = ContainerTests.cases
    var compared = 0
    for round in 0..<Self.rounds {
      let sample = samples[round % samples.count]
      let bytes = Self.mutated(sample.bytes, &random)
      let facts = ContainerReader.read(bytes, sample.format)
      var isRight = facts.bitDepth.map { (1...64).contains($0) } ?? true
      if let name = facts.colorSpace { isRight = isRight && EXIFValue(text: Array(name.utf8)[...]) == .text(name) }
      if facts.c2pa == true { isRight = isRight && Self.marks.contains { bytes.firstRange(of: $0) != nil } }
      if let naive = NaiveContainer(bytes, sample.format) {
        compared += 1
        let depth = naive.bitDepth.flatMap { (1...64).contains($0) ? $0 : nil }
        isRight =
          isRight && facts.hasAlpha == naive.hasAlpha && facts.c2pa == naive.c2pa && facts.bitDepth == depth
      }
      if !isRight {
        Issue.record("seed \(Self.seed), round \(round), \(sample.name): \(facts) of \(bytes)")
        break
      }
    }
    #expect(compared > Self.rounds / 3)
  }

  /// The names of manifests, of which one is a part of a UUID.
  private static let marks: [[UInt8]] = [Array("c2pa".utf8), [0x1B, 0x0E, 0x48, 0x3C]]

  private static func mutated(_ original: [UInt8], _ random: inout Seeded) -> [UInt8] {
    var bytes = original
    for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
      // Mostly near the start, where the headers are.
      let index = Int.random(in: 0..<min(bytes.count, Bool.random(using: &random) ? 64 : bytes.count), using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes[index] = .random(in: 0...255, using: &random)
      case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 2:
        for place in index..<min(index + Int.random(in: 1...8, using: &random), bytes.count) { bytes[place] = 0xFF }
      case 3: for place in index..<min(index + Int.random(in: 1...8, using: &random), bytes.count) { bytes[place] = 0 }
      case 4: bytes.removeSubrange(index..<min(index + Int.random(in: 1...8, using: &random), bytes.count))
      default: bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
      }
    }
    return bytes
  }
}

@Suite struct `PngSuite` {
  /// Searched next to the package and next to each folder above it.
  private static let folder = sequence(first: URL(filePath: #filePath)) {
    $0.path == "/" ? nil : $0.deletingLastPathComponent()
  }
  .map { $0.appending(path: "shared/pngsuite") }
  .first { FileManager.default.fileExists(atPath: $0.path) }

  private static let odd = ["cdfn2c08": (8, 32), "cdhn2c08": (32, 8), "cdsn2c08": (8, 8)]

  @Test(.enabled(if: folder != nil, "PngSuite is not beside the package"))
  func `every valid file has its size and every damaged header is refused`() throws {
    let files = try FileManager.default.contentsOfDirectory(at: #require(Self.folder), includingPropertiesForKeys: nil)
    var valid = 0
    for file in files where file.pathExtension == "png" {
      let name = file.deletingPathExtension().lastPathComponent
      let bytes = [UInt8](try Data(contentsOf: file))
      let recognition = Recognition(prefix: bytes, isComplete: true)
      if name.hasPrefix("x") {
        // Signatures, then colour types, depths and the checksum of the header. Later damage is left to the decoder.
        if ["xs", "xcr", "xlf"].contains(where: name.hasPrefix) { #expect(recognition == .notAnImage, "\(name)") }
        if ["xc1", "xc9", "xd0", "xd3", "xd9", "xhd"].contains(where: name.hasPrefix) {
          #expect(throws: ImageHeaderError.self, "\(name)") { try ImageHeader.read(bytes, format: .png) }
        }
        continue
      }
      #expect(recognition == .image(.png), "\(name)")
      let header = try ImageHeader.read(bytes, format: .png)
      let size = name.hasPrefix("s") ? Int(name.dropFirst().prefix(2)).map { ($0, $0) } : Self.odd[name]
      #expect(header.width == (size ?? (32, 32)).0 && header.height == (size ?? (32, 32)).1, "\(name)")
      valid += 1
    }
    #expect(valid > 100)
  }
}

import ImageCodec
import Testing

/// JPEGs with missing parts: those that decode in browsers all the same, and those that lack too much.
struct DamagedJPEGTests {
  /// 8 MCUs wide, 10 high, with a restart marker before each row but the first.
  private static var rows: BlockJPEG {
    var jpeg = plain
    jpeg.restartInterval = 8
    return jpeg
  }
  private static var plain: BlockJPEG {
    BlockJPEG(width: 64, height: 80, components: [.init(across: 1, down: 1) { ($0 * 3 + $1 * 2) % 256 }])
  }

  enum Damage: String, CaseIterable {
    case lostMarker, lostInterval, misplacedMarker, wrongNumber, repeatedMarker, badCodeInInterval, bytesLeft,
      noEndMarker, halfEndMarker, lastBytes

    /// The rows of pixels that may differ.
    var rows: Range<Int> {
      switch self {
      case .lostMarker, .lostInterval, .repeatedMarker, .badCodeInInterval: 32..<40
      case .misplacedMarker: 24..<40
      case .wrongNumber, .bytesLeft, .noEndMarker, .halfEndMarker: 0..<0
      case .lastBytes: 72..<80
      }
    }

    func done(to file: [UInt8]) -> [UInt8] {
      let markers = DamagedJPEGTests.restartMarkers(of: file)
      let (fourth, fifth) = (markers[3], markers[4])
      var result = file
      switch self {
      case .lostMarker: result.removeSubrange(fourth..<(fourth + 2))
      case .lostInterval: result.removeSubrange(fourth..<fifth)
      case .misplacedMarker:
        result.removeSubrange(fourth..<(fourth + 2))
        result.insert(contentsOf: file[fourth..<(fourth + 2)], at: fourth - 4)
      // Not adjacent to the expected number: an adjacent one would be treated as a loss.
      case .wrongNumber: result[fourth + 1] = 0xD7
      case .repeatedMarker: result.insert(contentsOf: file[fourth..<(fourth + 2)], at: fourth)
      // All ones do not end any code.
      case .badCodeInInterval:
        result.replaceSubrange((fourth + 2)..<(fourth + 6), with: [0xFE, 0xFE, 0xFE, 0xFE])
      // More than libjpeg reads ahead.
      case .bytesLeft: result.insert(contentsOf: [UInt8](repeating: 0x12, count: 64), at: fourth)
      case .noEndMarker: result.removeLast(2)
      case .halfEndMarker: result.removeLast()
      case .lastBytes: result.removeLast(5)
      }
      return result
    }
  }

  static func restartMarkers(of file: [UInt8]) -> [Int] {
    file.indices.dropLast().filter { file[$0] == 0xFF && (0xD0...0xD7).contains(file[$0 + 1]) }
  }

  @Test(arguments: Damage.allCases) func `a damaged JPEG decodes and is marked damaged`(damage: Damage) async throws {
    let decoding = try Decoding.shared()
    let file = damage.done(to: Self.rows.file)
    #expect(try await decoding.run(try decoding.task(file, .check)).get().notes == .damaged)
    #expect(try await decoding.run(try decoding.task(file, .placeholder)).get().notes == .damaged)
    #expect(try await decoding.encoded(file, .with { $0.width = 20 }).0.notes == .damaged)
    #expect(try await decoding.run(try decoding.task(file, .pixels(decoding.newPath()))).get().notes == .damaged)
    let pixels = try await decoding.pixels(file)
    for y in 0..<80 where !damage.rows.contains(y) {
      for x in stride(from: 4, to: 64, by: 8) { #expect(isNear(pixels[x, y], Self.rows.samples(x, y), within: 2)) }
    }
  }

  @Test func `a complete JPEG is not damaged, even with bytes between its segments`() async throws {
    let decoding = try Decoding.shared()
    let file = Self.rows.file
    let padded = file.dropLast(2) + [0, 0, 0, 0] + file.suffix(2)
    for whole in [file, Array(padded), file + [1, 2, 3], Self.plain.file] {
      #expect(try await decoding.run(try decoding.task(whole, .check)).get().notes == [])
      #expect(try await decoding.encoded(whole, .with { $0.width = 20 }).0.notes == [])
    }
  }

  @Test func `a crop above the damage is not reported as damaged`() async throws {
    let decoding = try Decoding.shared()
    let file = Damage.lostMarker.done(to: Self.rows.file)
    let crop = Transform.with { $0.crop = .init(x: 0, y: 0, width: 64, height: 8) }
    #expect(try await decoding.encoded(file, crop).0.notes == [])
  }

  @Test(arguments: [8, 0]) func `a file that ends above its last rows is corrupt`(restartInterval: Int) async throws {
    let decoding = try Decoding.shared()
    var jpeg = Self.plain
    jpeg.restartInterval = restartInterval
    let file = jpeg.file
    let cut = Array(file.dropLast((file.count - 200) / 3))
    for output in [DecodeTask.Output.check, .pixels(decoding.newPath()), .encoded(decoding.newPath())] {
      let outcome = await decoding.run(try decoding.task(cut, output))
      #expect(outcome == .failure(.corrupt("the image is damaged (Premature end of JPEG file)")))
    }
  }

  @Test func `a small image that lacks its last rows is corrupt`() async throws {
    let decoding = try Decoding.shared()
    let small = BlockJPEG(width: 64, height: 16, components: Self.rows.components).file
    let cut = await decoding.run(try decoding.task(small.dropLast(8), .check))
    #expect(cut == .failure(.corrupt("the image is damaged (Premature end of JPEG file)")))
    #expect(try await decoding.run(try decoding.task(small.dropLast(2), .check)).get().notes == .damaged)
  }

  @Test func `a loss that no restart marker bounds does not pass the check, and is shown as damaged`() async throws {
    let decoding = try Decoding.shared()
    let file = Self.plain.file
    let middle = file.count - 60
    let badCode = Array(file[..<middle]) + [0xFE, 0xFE, 0xFE, 0xFE] + file[(middle + 4)...]
    let early = Array(file[..<middle]) + [0xFF, 0xD9]
    for broken in [badCode, early] {
      let outcome = await decoding.run(try decoding.task(broken, .check))
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(outcome)") }
      #expect(try await decoding.run(try decoding.task(broken, .pixels(decoding.newPath()))).get().notes == .damaged)
    }
  }

  @Test func `a file that ends between its scans is corrupt where a component is missing`() async throws {
    let decoding = try Decoding.shared()
    let components = [0, 1, 2].map { step in BlockJPEG.Component(across: 1, down: 1) { ($0 + $1 * (step + 1)) % 256 } }
    let file = BlockJPEG(width: 64, height: 80, components: components, hasScanForEach: true).file
    let scans = file.indices.dropLast().filter { file[$0] == 0xFF && file[$0 + 1] == 0xDA }
    for output in [DecodeTask.Output.check, .pixels(decoding.newPath())] {
      let outcome = await decoding.run(try decoding.task(Array(file[..<scans[2]]), output))
      #expect(outcome == .failure(.corrupt("the image is damaged (Premature end of JPEG file)")))
    }
    #expect(try await decoding.run(try decoding.task(file.dropLast(2), .check)).get().notes == .damaged)
  }

  /// Images that are too large to be resampled in memory, and CMYK images, are decoded by libvips' pipeline.
  @Test(arguments: [(2048, 2056, 1), (64, 80, 4)])
  func `damage is also reported by libvips' pipeline`(width: Int, height: Int, count: Int) async throws {
    let decoding = try Decoding.shared()
    let components = [BlockJPEG.Component](repeating: .init(across: 1, down: 1) { ($0 + $1) % 256 }, count: count)
    let whole = BlockJPEG(width: width, height: height, components: components, restartInterval: 8).file
    #expect(try await decoding.run(try decoding.task(whole, .pixels(decoding.newPath()))).get().notes == [])
    let file = Damage.lostMarker.done(to: whole)
    #expect(try await decoding.run(try decoding.task(file, .check)).get().notes == .damaged)
    let (decoded, _) = try await decoding.encoded(file)
    #expect(decoded.notes == .damaged)
    #expect(try await decoding.run(try decoding.task(file, .pixels(decoding.newPath()))).get().notes == .damaged)
  }
}

import Foundation
import ImageCodec
import Testing

private let pngSuite: String? = {
  var url = URL(filePath: #filePath)
  while url.path != "/" {
    url.deleteLastPathComponent()
    let candidate = url.appending(path: "shared/pngsuite").path
    if FileManager.default.fileExists(atPath: candidate) { return candidate }
  }
  return nil
}()

/// The images of Willem van Schaik's PngSuite, which is not part of the repository; skipped if it is missing.
@Suite(.enabled(if: pngSuite != nil, "shared/pngsuite must be next to the repository"))
struct PngSuiteTests {
  static var names: [String] {
    guard let pngSuite else { return [] }
    return ((try? FileManager.default.contentsOfDirectory(atPath: pngSuite)) ?? []).filter { $0.hasSuffix(".png") }
      .sorted()
  }

  private func content(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: "\(pngSuite ?? "")/\(name)")))
  }

  @Test func `valid files are decoded in their size and broken ones are refused`() async throws {
    let decoding = try Decoding(count: 2)
    #expect(Self.names.count > 150)
    for name in Self.names {
      let bytes = try content(name)
      let isBroken = name.hasPrefix("x")
      guard let header = try? Decoding.header(bytes) else {
        #expect(isBroken, "\(name)")
        continue
      }
      let task = try decoding.task(bytes, .check, placeholder: true)
      switch await decoding.run(task) {
      case .success(let decoded):
        #expect(!isBroken, "\(name)")
        #expect((decoded.sourceWidth, decoded.sourceHeight) == (header.width, header.height), "\(name)")
      case .failure(.corrupt): #expect(isBroken, "\(name)")
      case .failure(let error): #expect(Bool(false), "\(name): \(error)")
      }
    }
    #expect(decoding.pool.statistics.crashed == 0)
  }

  /// The same picture, stored in rows and in the seven passes of Adam7.
  @Test(arguments: [
    "0g01", "0g02", "0g04", "0g08", "0g16", "2c08", "2c16", "3p01", "3p02", "3p04", "3p08", "4a08", "4a16", "6a08",
    "6a16",
  ])
  func `an interlaced file decodes like one that is not`(kind: String) async throws {
    let decoding = try Decoding()
    let plain = try await decoding.pixels(try content("basn\(kind).png"))
    let interlaced = try await decoding.pixels(try content("basi\(kind).png"))
    #expect((plain.width, plain.height) == (32, 32))
    #expect(plain == interlaced)
  }
}

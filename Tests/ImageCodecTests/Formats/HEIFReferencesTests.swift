import Foundation
import ImageCodec
import Testing

/// HEICs whose metadata describes two images, as in photos of iOS 18.
struct HEIFReferencesTests {
  private let decoding: Decoding

  init() throws { decoding = try .shared() }

  /// 64 x 48 pixels, with EXIF (item 3) that describes the primary image (2) and a tone-mapped one (4), which is made
  /// from the primary one and another (1).
  static let photo = [UInt8](
    Data(
      base64Encoded: """
        AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAh9tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAA\
        AAAAACAAAAEGlkYXQAAAAAAEAAMAAAAGBpbG9jAQAAAERAAAQAAQAAAAAAAAJDAAEAAAAAAAAAkAACAAEAAAAAAAAAAQAAAAAAAAAIAAMAAAAA\
        AAAC0wABAAAAAAAAALgABAABAAAAAAAAAAEAAAAIAAAAAAAAAGJpaW5mAAAAAAAEAAAAFWluZmUCAAABAAEAAGh2YzEAAAAAFWluZmUCAAAAAA\
        IAAGdyaWQAAAAAFWluZmUCAAABAAMAAEV4aWYAAAAAFWluZmUCAAABAAQAAHRtYXAAAAAA2GlwcnAAAAC2aXBjbwAAAHZodmNDAQNwAAAAAAAA\
        AAAAHvAA/P34+AAADwMgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQCEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5uBAQMCAAAA\
        MAIAAAAwAhIgABAAZEAcFzwIkAAAAUaXNwZQAAAAAAAABAAAAAQAAAABRpc3BlAAAAAAAAAEAAAAAwAAAAEHBpeGkAAAAAAwgICAAAABppcG1h\
        AAAAAAAAAAIAAQKBAgACAgOEAAAAOmlyZWYAAAAAAAAADmRpbWcAAgABAAEAAAAQZGltZwAEAAIAAgABAAAAEGNkc2MAAwACAAIABAAAAVBtZG\
        F0AAAAjCgBrxmA70oQty4e/tiGOrCr4PMXJSOfZEd1DcZfkPvRnnFbXojTH38sSU0yJ/P+fSQ/3VO7cHzXd0lYGVcX79/YLpUrciNV2VdR36q4\
        ph60VOoDHj4ok9txQF0GnFD85zeDUMksDQLAEsHmGGPGhXY85jd0Q5fxEYv6wmn85uazakqT9M4rokQgDt4uAAAABkV4aWYAAE1NACoAAAAIAA\
        YBDwACAAAABgAAAFYBEgADAAAAAQABAAABGgAFAAAAAQAAAFwBGwAFAAAAAQAAAGQBKAADAAAAAQACAACHaQAEAAAAAQAAAGwAAAAATWFrZXIA\
        AAAASAAAAAEAAABIAAAAAQAFkAAABwAAAAQwMjEwoAAABwAAAAQwMTAwoAEAAwAAAAH//wAAoAIABAAAAAEAAABAoAMABAAAAAEAAAAwAAAAAA\
        ==
        """)!)

  private static let shared = reference("cdsc", from: 3, to: [2, 4])

  private static func reference(_ type: String, from: Int, to targets: [Int], isLong: Bool = false) -> [UInt8] {
    let id = isLong ? Build.big32 : Build.big16
    return Build.box(type, id(from) + Build.big16(targets.count) + targets.flatMap(id))
  }

  private static func replacing(_ old: [UInt8], by new: [UInt8]) throws -> [UInt8] {
    let range = try #require(photo.firstRange(of: old))
    return photo[..<range.lowerBound] + new + photo[range.upperBound...]
  }

  private func exif(of file: [UInt8]) async throws -> [EXIFField: EXIFValue]? {
    try await decoding.run(try decoding.task(file, .facts(.exif))).get().facts.exif
  }

  @Test func `metadata that describes two images describes the primary one`() async throws {
    // libheif reads it if it describes none.
    let simple = try Self.replacing(Self.shared, by: Self.reference("skip", from: 3, to: [2, 4]))
    let pixels = try await decoding.pixels(Self.photo)
    #expect((pixels.width, pixels.height) == (64, 48))
    #expect(try await pixels == decoding.pixels(simple))
    #expect(try await exif(of: Self.photo)?[.make] == .text("Maker"))
  }

  @Test func `metadata is left out if no other reference leaves it a place`() async throws {
    let second = Self.reference("dimg", from: 4, to: [2, 1])
    let file = try Self.replacing(second, by: Self.reference("dimg", from: 9, to: [2, 1]))
    #expect(try await decoding.pixels(file) == decoding.pixels(Self.photo))
    #expect(try await exif(of: file)?[.make] == nil)
  }

  @Test func `an error has libheif's reason`() async throws {
    let file = try Self.replacing(Array("hvcC".utf8), by: Array("skip".utf8))
    let outcome = await decoding.run(try decoding.task(file, .check))
    guard case .failure(let error) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect("\(error)".contains("heif: "), "\(error)")
  }

  @Test(arguments: [false, true]) func `the references keep their length`(isLong: Bool) throws {
    func reference(_ type: String, from: Int, to targets: [Int]) -> [UInt8] {
      Self.reference(type, from: from, to: targets, isLong: isLong)
    }
    func file(_ references: [[UInt8]]) -> [UInt8] {
      Build.ftyp("heic")
        + Build.box(
          "meta",
          Build.big32(0) + Build.box("pitm", Build.big32(0) + Build.big16(2))
            + Build.box("iref", [isLong ? 1 : 0, 0, 0, 0] + references.flatMap(\.self)))
    }
    let tiles = reference("dimg", from: 2, to: [1])
    // The primary image is preferred.
    let before = file([tiles, reference("dimg", from: 4, to: [2, 1]), reference("cdsc", from: 3, to: [4, 2])])
    let references = try #require(HEIFReferences(before))
    let ignored = reference("skip", from: 0, to: [0, 0, 0])
    #expect(references.describingOneImage == tiles + reference("cdsc", from: 3, to: [2]) + ignored)
    #expect(references.range == (before.count - references.range.count)..<before.count)

    for list in [[tiles, reference("cdsc", from: 3, to: [2])], [tiles], [reference("cdsc", from: 3, to: [])]] {
      #expect(try #require(HEIFReferences(file(list))).describingOneImage == nil)
    }
    // Cut, or longer than the box.
    for list in [[tiles.dropLast()], [tiles + [0]]] { #expect(HEIFReferences(file(list.map { Array($0) })) == nil) }
    for count in 0..<before.count { _ = HEIFReferences(Array(before[..<count])) }
  }
}

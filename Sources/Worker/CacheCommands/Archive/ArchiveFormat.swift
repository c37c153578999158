internal import LineRPC

/// The format of an archive of `imageworker cache export`: a tar archive with a manifest, then for each entry a member
/// with its description and one with its image, in the order of keys.
enum ArchiveFormat {
  /// Increased by each change that a reader of the version before does not understand.
  static let version: Int64 = 1

  private static let folder = "imageworker-cache/"
  private static let kind = "imageworker-cache"
  static let manifestName = folder + "manifest.json"

  /// Larger manifests and descriptions are refused. A description has at most 16 kB of header fields and a few URLs.
  static let maxDescriptionBytes: Int64 = 1 << 20

  /// - Parameter number: from 1.
  static func descriptionName(_ number: Int) -> String { stem(number) + "json" }

  static func imageName(_ number: Int, ending: String) -> String { stem(number) + ending }

  /// Whether a name is that of the image of an entry, with whatever ending.
  static func isImageName(_ name: String, _ number: Int) -> Bool {
    name.hasPrefix(stem(number)) && !name.hasSuffix(".json")
  }

  private static func stem(_ number: Int) -> String {
    let digits = String(number)
    return folder + String(repeating: "0", count: max(0, 8 - digits.count)) + digits + "."
  }

  static var manifest: [UInt8] {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("format", kind)
      writer.member("version", version)
      writer.member("worker", Version.current)
    }
    return writer.line()
  }

  static func check(manifest bytes: [UInt8]) throws(ArchiveError) {
    guard case .object(let object)? = try? JSON(parsing: bytes), object["format"] == .string(kind),
      case .integer(let found)? = object["version"]
    else { throw ArchiveError("the manifest is not that of imageworker cache export") }
    guard found == version else {
      throw ArchiveError(
        "the archive has version \(found) of its format, and this imageworker (\(Version.current)) reads version \(version)"
      )
    }
  }
}

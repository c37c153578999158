import Foundation

/// A folder that is removed after its test.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "imageworker-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.resolvingSymlinksInPath().path
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The path of an entry in the folder.
  func appending(_ name: String) -> String { "\(path)/\(name)" }

  /// The relative paths of all files below a subfolder.
  func files(below name: String = "") throws -> [String] {
    let root = name.isEmpty ? path : appending(name)
    return try FileManager.default.subpathsOfDirectory(atPath: root).filter { file in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: "\(root)/\(file)", isDirectory: &isFolder) && !isFolder.boolValue
    }
  }
}

/// The content of a file.
func contents(of path: String?) throws -> [UInt8] {
  [UInt8](try Data(contentsOf: URL(fileURLWithPath: path ?? "")))
}

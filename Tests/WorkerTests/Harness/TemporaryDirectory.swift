import Foundation

/// A folder of one test, gone with it.
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

  /// Where something in it lies.
  func appending(_ name: String) -> String { "\(path)/\(name)" }

  /// Every file below a folder in it, by path from there.
  func files(below name: String = "") throws -> [String] {
    let root = name.isEmpty ? path : appending(name)
    return try FileManager.default.subpathsOfDirectory(atPath: root).filter { file in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: "\(root)/\(file)", isDirectory: &isFolder) && !isFolder.boolValue
    }
  }
}

/// The bytes of a file.
func contents(of path: String?) throws -> [UInt8] {
  [UInt8](try Data(contentsOf: URL(fileURLWithPath: path ?? "")))
}

internal import LineRPC

/// Gives the folders of the worker names that do not depend on the process: `{cache}`, `{scratch}`, `{pixels}`.
///
/// So the paths of a recorded session and of its replay are equal, and a path that a host sends back names the file of
/// the replay.
public struct WorkerPaths: Sendable {
  private struct Folder: Sendable {
    let name: String
    let directory: String
    /// Whether each process has a folder of its own in the directory.
    let isCommon: Bool
    /// The name of this process's folder, as far as it is known from a path.
    var own: String?
  }

  private var folders: [Folder]

  /// - Parameters:
  ///   - cache: the cache directory.
  ///   - scratch: the directory with the scratch folders of all processes.
  ///   - pixels: the directory with the pixel folders of all processes.
  ///   - host: the folder that stands for the root of the host's files; nil in a recording.
  public init(cache: String, scratch: String, pixels: String, host: String? = nil) {
    folders = [
      Folder(name: "{cache}", directory: cache, isCommon: false),
      Folder(name: "{scratch}", directory: scratch, isCommon: true),
      Folder(name: "{pixels}", directory: pixels, isCommon: true),
    ]
    if let host { folders.append(Folder(name: "", directory: host, isCommon: false)) }
    // The longest first: one may contain another.
    folders.sort { $0.directory.utf8.count > $1.directory.utf8.count }
  }

  /// The text with the names instead of the folders.
  mutating func general(_ text: String) -> String {
    var bytes = Array(text.utf8)
    guard bytes.contains(UInt8(ascii: "/")) else { return text }
    var isChanged = false
    for index in folders.indices {
      let pattern = Array(folders[index].directory.utf8)
      var position = 0
      while let start = URLRedaction.find(pattern, in: bytes, from: position) {
        var end = start + pattern.count
        position = end
        // Only whole components.
        guard end == bytes.count || !Self.isOfName(bytes[end]) else { continue }
        if folders[index].isCommon, end < bytes.count, bytes[end] == UInt8(ascii: "/") {
          let rest = bytes[(end + 1)...].prefix(while: Self.isOfName)
          folders[index].own = String(decoding: rest, as: UTF8.self)
          end = rest.endIndex
        }
        let name = Array(folders[index].name.utf8)
        bytes.replaceSubrange(start..<end, with: name)
        position = start + name.count
        isChanged = true
      }
    }
    return isChanged ? String(decoding: bytes, as: UTF8.self) : text
  }

  /// The path of a request with the folders instead of the names.
  func local(_ path: String) -> String {
    for folder in folders where !folder.name.isEmpty && path.hasPrefix(folder.name) {
      let rest = path.dropFirst(folder.name.count)
      return folder.directory + (folder.isCommon ? "/" + (folder.own ?? "none") : "") + rest
    }
    return path
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}

internal import Platform

/// The path of the cache directory.
enum CacheDirectory {
  /// The message if there is neither an option nor a default.
  static let unknown = "HOME is not set; name a cache directory with --cache-dir"

  /// `$XDG_CACHE_HOME/imageworker`, else `~/.cache/imageworker` (XDG Base Directory Specification).
  static var standard: String? {
    if let base = environment("XDG_CACHE_HOME"), base.hasPrefix("/") { return base + "/imageworker" }
    return environment("HOME").map { $0 + "/.cache/imageworker" }
  }

  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
    defer { free(current) }
    return "\(String(cString: current))/\(path)"
  }

  private static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

extension Options {
  /// The absolute path of the cache directory; nil without an option and a default.
  var cachePath: String? { (cacheDirectory ?? CacheDirectory.standard).map(CacheDirectory.absolute) }
}

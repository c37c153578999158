internal import HTTPTypes

/// The cache directives in the host's own request headers.
struct RequestDirectives {
  /// Whether the request is for the whole resource, without a range and without conditions.
  var areForWhole: Bool { !isConditional && !hasRange }

  /// `Pragma: no-cache` counts as `no-cache` if there is no Cache-Control (RFC 9111 section 5.4).
  private(set) var control = CacheControl()
  /// Whether the host validates itself.
  private(set) var isConditional = false
  /// Whether the host requests a range. A part is not an image to store, and cannot be cut from a stored one here.
  private(set) var hasRange = false

  init(_ headers: HeaderFields) {
    var hasCacheControl = false
    var pragmas: [String] = []
    for line in headers.lines {
      switch line.name {
      case "cache-control": hasCacheControl = true
      case "pragma": pragmas.append(line.value)
      case "range": hasRange = true
      default: isConditional = isConditional || Self.conditions.contains(line.name)
      }
    }
    if hasCacheControl {
      control = CacheControl(headers.values(of: "cache-control"))
    } else if !pragmas.isEmpty {
      control.noCache = CacheControl(pragmas).noCache
    }
  }

  /// Whether the cache evaluates a field of this name, which must be in lower case.
  static func isRelevant(_ name: String) -> Bool {
    ["cache-control", "pragma", "range"].contains(name) || conditions.contains(name)
  }

  /// RFC 9110 section 13.1.
  private static let conditions = ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"]

  /// The mode with the host's own validation considered. A host that validates itself bypasses the cache, and in the
  /// default mode stores nothing (Fetch standard, HTTP-network-or-cache fetch), unless its mode explicitly asks for
  /// cached responses.
  func effectiveMode(_ mode: CacheMode) -> CacheMode {
    guard isConditional else { return mode }
    return switch mode {
    case .default: .noStore
    case .noCache, .refresh: .reload
    case .noStore, .reload, .forceCache, .onlyIfCached: mode
    }
  }
}

internal import HTTPTypes

/// What the host's own request headers ask of the cache.
struct RequestDirectives {
  /// Whether all of what is there is asked for: no part, and on no condition.
  var areForWhole: Bool { !isConditional && !hasRange }

  /// With `Pragma: no-cache` taken for `no-cache` where there is no Cache-Control (RFC 9111 section 5.4).
  private(set) var control = CacheControl()
  /// The host validates on its own.
  private(set) var isConditional = false
  /// The host wants a part, which is no image to keep and cannot be cut from one here.
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

  /// Whether a field of this name, in lower case, means something to the cache.
  static func isRelevant(_ name: String) -> Bool {
    ["cache-control", "pragma", "range"].contains(name) || conditions.contains(name)
  }

  /// RFC 9110 section 13.1.
  private static let conditions = ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"]

  /// A host that validates on its own goes past the cache, and in the default mode leaves nothing there (Fetch
  /// standard, HTTP-network-or-cache fetch), unless it asks for what is cached in so many words.
  func effectiveMode(_ mode: CacheMode) -> CacheMode {
    guard isConditional else { return mode }
    return switch mode {
    case .default: .noStore
    case .noCache, .refresh: .reload
    case .noStore, .reload, .forceCache, .onlyIfCached: mode
    }
  }
}

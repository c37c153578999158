internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Loading
internal import Platform

/// The configurations of the modules that the options define.
extension Options {
  /// `maxConcurrent`, limited by the available file descriptors.
  private var concurrentTransfers: TransferLimit {
    maxConcurrent.count.map { .fixed(min($0, DescriptorBudget.current.transfers)) } ?? .auto
  }

  var loaderSettings: LoaderSettings {
    var settings = LoaderSettings()
    settings.limits.maxConcurrent = concurrentTransfers
    let budget = DescriptorBudget.current
    settings.limits.maxTransfers = budget.transfers
    settings.limits.maxFinishing = min(settings.limits.maxFinishing, budget.finishing)
    settings.limits.maxPerOrigin = maxPerHost
    settings.limits.maxQueued = maxQueued
    if maxConnectionsPerHost > 0 { settings.limits.maxConnectionsPerOrigin = maxConnectionsPerHost }
    settings.limits.startInterval = rate.flatMap(RequestRate.interval)
    settings.limits.maxUndecoded = 2 * ((maxConcurrent.count ?? 32) + decoderSettings.count)
    settings.limits.order = order
    settings.memoryLimit = memoryLimit
    settings.diskLimit = diskLimit
    settings.maxAge = Int(maxAge.milliseconds / 1000)
    settings.maxRedirects = maxRedirects
    settings.maxPixels = Int(maxPixels)
    settings.failedTimeToLive = failedTimeToLive
    if robots == .obey { settings.robotsUserAgent = userAgent }
    return settings
  }

  var transportConfiguration: TransportConfiguration {
    var configuration = TransportConfiguration(userAgent: userAgent)
    configuration.connectTimeout = connectTimeout.limit
    configuration.resolver = resolver
    configuration.minRate = minRate
    configuration.network = network
    configuration.proxy = proxy
    configuration.cookies = cookieFile
    configuration.insecure = insecure
    configuration.fieldsLeftOut = headersLeftOut
    let maxTransfers = loaderSettings.limits.maxWindow
    configuration.maxConnections = min(max(128, 4 * maxTransfers), DescriptorBudget.current.connections)
    return configuration
  }

  var decoderSettings: DecoderSettings {
    DecoderSettings(
      count: decoders > 0 ? decoders : Processors.count, timeout: decodeTimeout.limit,
      memoryLimit: Int(decodeMemory), lifetime: decoderLifetime)
  }

  /// The header fields of every request: those that the user set, and defaults for `accept` and `user-agent`.
  var requestHeaders: HeaderFields {
    var defaults: HeaderFields = ["accept": "image/*,*/*;q=0.8"]
    // An empty user agent is not sent, as in curl.
    if !userAgent.isEmpty { defaults["user-agent"] = userAgent }
    for name in headersLeftOut { defaults.remove(name) }
    let sent = headers.compactMap { text in
      if case .sent(let field) = HeaderOption(text) { field } else { nil }
    }
    return defaults.replacing(HeaderFields(sent))
  }

  private var headersLeftOut: Set<String> {
    Set(
      headers.compactMap { text in
        if case .leftOut(let name) = HeaderOption(text) { name } else { nil }
      })
  }

  /// The fraction of the file system that must stay free.
  var minFreeFraction: Double { Double(minFree) / 100 }

  /// The absolute path of the cache directory; nil without an option and a default.
  var cachePath: String? { (cacheDirectory ?? CacheDirectory.standard).map(CacheDirectory.absolute) }
}

extension Duration {
  /// The limit of a timeout option; zero stands for no limit.
  var limit: Duration { self == .zero ? .milliseconds(Quantity.maxMilliseconds) : self }
}

extension HeaderFields {
  /// These fields, with `replacements` instead of fields of the same names.
  func replacing(_ replacements: HeaderFields) -> HeaderFields {
    HeaderFields(lines.filter { line in !replacements.lines.contains { $0.name == line.name } } + replacements.lines)
  }
}

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

/// The numbers of transfers, connections and files for which the file descriptors of the process suffice.
///
/// Each transfer counts as six descriptors: two connections, one of which may be idle; two files, one of which belongs
/// to a complete body that is being written to disk; and two for short-lived sockets, such as a name lookup or a
/// connection attempt to a second address.
struct DescriptorBudget: Equatable {
  /// The maximum number of concurrent transfers.
  let transfers: Int
  /// The maximum number of open connections, including idle ones.
  var connections: Int { 2 * transfers }
  /// The maximum number of complete bodies that are being written to disk.
  var finishing: Int { transfers }

  /// Reserves 40 descriptors for the streams, the index, locks and files that are read, and four for each decoder: its
  /// two sockets, the source and the output. The reserve is at most half of all descriptors.
  ///
  /// - Parameter descriptors: the maximum for the process.
  init(descriptors: Int, decoders: Int) {
    let reserve = min(40 + 4 * decoders, descriptors / 2)
    transfers = max(1, (descriptors - reserve) / 6)
  }

  /// The budget under the present limit of open files (RLIMIT_NOFILE), with one decoder per processor.
  static var current: DescriptorBudget {
    DescriptorBudget(descriptors: descriptorLimit() ?? .max, decoders: Processors.count)
  }
}

/// The value of one `--header`, in curl's syntax.
enum HeaderOption {
  /// `Name: value`, or `Name;` for a field with an empty value.
  case sent(HeaderField)
  /// `Name:`, which leaves out a field that the worker would send by default. In lower case.
  case leftOut(String)

  init?(_ text: String) {
    if let colon = text.firstIndex(of: ":") {
      let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      let field = HeaderField(String(text[..<colon]), String(value))
      self = value.isEmpty ? .leftOut(field.name) : .sent(field)
    } else if text.hasSuffix(";") {
      self = .sent(HeaderField(String(text.dropLast()), ""))
    } else {
      return nil
    }
  }

  /// The reason why the text is refused, without any field's value, or nil.
  static func problem(in text: String) -> String? {
    if text.hasPrefix("@") { return "must be 'Name: value'; fields cannot be read from a file ('@file')" }
    return switch HeaderOption(text) {
    case .sent(let field): RequestHeaders.problem(in: HeaderFields([field])).map { "cannot be sent: \($0)" }
    case .leftOut(let name): RequestHeaders.problem(inLeavingOut: name).map { "cannot be used: \($0)" }
    case nil: "must be 'Name: value', 'Name;' (sent empty) or 'Name:' (left out)"
    }
  }
}

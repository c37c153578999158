internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading

typealias OptionPath<Value> = any WritableKeyPath<Options, Value> & Sendable

/// One option: its name on the command line, how it is read, and what `--help` says.
///
/// `configure` and `initialize` know it by the name in camelCase, durations with `Ms` after it, if it can change while
/// the worker runs.
struct OptionDefinition: Sendable {
  enum Kind: Sendable {
    case flag(OptionPath<Bool>)
    case count(OptionPath<Int>, ClosedRange<Int>)
    /// A number, or `auto`.
    case limit(OptionPath<TransferLimit>, ClosedRange<Int>)
    case size(OptionPath<Int64>, ClosedRange<Int64>)
    /// As a size, but K, M and G are powers of 1000.
    case pixels(OptionPath<Int64>)
    case percent(OptionPath<Int>)
    case duration(OptionPath<Duration>)
    case text(OptionPath<String>, check: @Sendable (String) -> String?)
    /// In `configure` null where it is not set.
    case optionalText(OptionPath<String?>, check: @Sendable (String) -> String?)
    /// Repeatable. With a comma as separator one value can hold several.
    case list(OptionPath<[String]>, separator: Character?, check: @Sendable (String) -> String?)
    case choice([String], get: @Sendable (Options) -> String, set: @Sendable (inout Options, String) -> Void)
  }

  let name: String
  let placeholder: String
  let kind: Kind
  let isRuntime: Bool
  /// Whether its value can hold a password, so that no message shows it.
  let isSecret: Bool
  let help: String

  init(
    _ name: String, _ placeholder: String, _ kind: Kind, runtime: Bool = true, secret: Bool = false, _ help: String
  ) {
    self.name = name
    self.placeholder = placeholder
    self.kind = kind
    self.isRuntime = runtime
    isSecret = secret
    self.help = help
  }

  /// The member's name in `configure`.
  var member: String {
    let words = name.split(separator: "-")
    let camelCase = words[0] + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    if case .duration = kind { return camelCase + "Ms" }
    return String(camelCase)
  }

  /// What a message about a refused value may show of it.
  func shown(_ value: String) -> String { isSecret ? "" : "\"\(value)\" " }

  private static func choice<Choice: RawRepresentable & CaseIterable & Sendable>(
    _ path: OptionPath<Choice>
  ) -> Kind where Choice.RawValue == String {
    .choice(
      Choice.allCases.map(\.rawValue), get: { $0[keyPath: path].rawValue },
      set: { options, name in Choice(rawValue: name).map { options[keyPath: path] = $0 } })
  }

  private static let anySize: ClosedRange<Int64> = 0...(1 << 60)

  /// The one place that names the options.
  static let all: [OptionDefinition] = [
    .init(
      "cache-dir", "DIR", .optionalText(\.cacheDirectory, check: checkPath), runtime: false,
      "the disk cache [$XDG_CACHE_HOME/imageworker, else ~/.cache/imageworker]"),
    .init(
      "cache-namespace", "NAME", .text(\.cacheNamespace, check: checkNamespace), runtime: false,
      "separate caches in one directory [default]"),
    .init(
      "read-only-cache", "DIR", .list(\.readOnlyCaches, separator: nil, check: { _ in nil }), runtime: false,
      "a further cache directory to look in, never written; repeatable"),
    .init(
      "memory-limit", "SIZE", .size(\.memoryLimit, anySize), "memory tier, bytes of image data; 0 turns it off [128M]"),
    .init("disk-limit", "SIZE", .size(\.diskLimit, anySize), "disk tier; 0 turns it off [1G]"),
    .init("max-age", "DURATION", .duration(\.maxAge), "nothing older is served unvalidated [7d]"),
    .init(
      "max-concurrent", "N|auto", .limit(\.maxConcurrent, 1...10_000),
      "transfers at once, all origins; auto finds how many carry most [auto]"),
    .init(
      "max-per-host", "N|auto", .limit(\.maxPerHost, 1...10_000),
      "transfers at once to one origin; auto finds how many carry most [auto]"),
    .init(
      "max-connections-per-host", "N", .count(\.maxConnectionsPerHost, 0...10_000),
      "connections at once to one origin, of which one carries many transfers in HTTP/2; 0 allows any number [0]"),
    .init(
      "rate", "N/s", .optionalText(\.rate, check: { RequestRate.problem(in: $0) }),
      "requests a second to one origin, evenly spaced, such as 5/s or 0.5/s [no limit]"),
    .init("max-line", "SIZE", .size(\.maxLine, 1...(1 << 31)), runtime: false, "longest request line [32M]"),
    .init("max-redirects", "N", .count(\.maxRedirects, 0...100), "redirects followed for one load [10]"),
    .init("max-queued", "N", .count(\.maxQueued, 0...100_000_000), "loads waiting; one more is overloaded [1000000]"),
    .init("order", "fifo|lifo", choice(\.order), "which of two waiting loads of one priority goes first [fifo]"),
    .init("timeout", "DURATION", .duration(\.timeout), "no byte arrived for this long; 0 is no limit [15s]"),
    .init(
      "connect-timeout", "DURATION", .duration(\.connectTimeout), "resolving, connecting, TLS; 0 is no limit [10s]"),
    .init(
      "min-rate", "SIZE", .size(\.minRate, anySize),
      "bytes of a body that have to arrive within 30 seconds; 0 allows any rate [1K]"),
    .init("deadline", "DURATION", .duration(\.deadline), "whole load, queueing and retries included; 0 is none [0]"),
    .init("retries", "N", .count(\.retries, 0...100), "further attempts after a retryable failure [2]"),
    .init(
      "failed-ttl", "DURATION", .duration(\.failedTimeToLive),
      "how long a permanent failure is remembered; 0 turns it off [60s]"),
    .init("max-bytes", "SIZE", .size(\.maxBytes, anySize), "largest body [100M]"),
    .init(
      "max-pixels", "N", .pixels(\.maxPixels),
      "largest width x height x frames, decoded or written; here K, M, G are powers of 1000 [100M]"),
    .init("decoders", "N", .count(\.decoders, 0...1024), runtime: false, "decoder processes; 0 is one a core [0]"),
    .init("decode-timeout", "DURATION", .duration(\.decodeTimeout), "one decode; 0 is no limit [10s]"),
    .init(
      "min-free", "PERCENT", .percent(\.minFree),
      "the disk tier shrinks below this much free space; the % may be left out [5%]"),
    .init(
      "verify", "random|always|never", choice(\.verify),
      "whether a cached file's digest is checked first; random is one in a hundred [random]"),
    .init(
      "resolver", "c-ares|system", choice(\.resolver),
      "how names are looked up: c-ares asks the name servers, system calls getaddrinfo [c-ares]"),
    .init("network", "any|public", choice(\.network), "public refuses addresses that are not globally routable [any]"),
    .init(
      "proxy", "URL", .optionalText(\.proxy, check: { TransportConfiguration.problem(inProxy: $0) }),
      secret: true, "as in curl; an empty one is none at all [the environment's]"),
    .init(
      "user-agent", "TEXT", .text(\.userAgent, check: checkUserAgent), "as in curl [ImageWorker/\(Version.current)]"),
    .init(
      "header", "'Name: value'", .list(\.headers, separator: nil, check: { HeaderOption.problem(in: $0) }),
      secret: true, "sent with every request; 'Name;' is sent empty, 'Name:' is left out; repeatable"),
    .init(
      "cookies", "FILE", .optionalText(\.cookies, check: checkPath), runtime: false,
      "a cookie file, as curl's --cookie; read once, at the start, and it has to be there"
    ),
    .init("insecure", "", .flag(\.insecure), "accept every certificate"),
    .init(
      "key-ignore-query", "NAME", .list(\.keyIgnoredQuery, separator: nil, check: { _ in nil }),
      "a query parameter that does not count for the cache key, * globs; repeatable"),
    .init(
      "events", "LIST", .list(\.events, separator: ",", check: { EventNames.check($0) }),
      "events sent for every request, comma separated"),
    .init("eof", "drain|cancel", choice(\.endOfInput), "what end of input does [drain]"),
    .init("exit-status", "", .flag(\.exitStatus), "exit 3 if any request ended in an error"),
    .init("log-level", "LEVEL", choice(\.logLevel), "error, warning, info or debug, on standard error [warning]"),
  ]

  private static let checkPath: @Sendable (String) -> String? = {
    $0.isEmpty ? "is empty" : nil
  }

  private static let checkNamespace: @Sendable (String) -> String? = {
    DiskTier.isValidNamespace($0) ? nil : "is no name for a folder"
  }

  private static let checkUserAgent: @Sendable (String) -> String? = {
    RequestHeaders.problem(in: ["user-agent": $0])
  }
}

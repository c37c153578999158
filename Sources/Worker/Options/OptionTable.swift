internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Tracing

typealias OptionPath<Value> = any WritableKeyPath<Options, Value> & Sendable

/// One option: its name on the command line, the kind of its value, and its line in `--help`.
///
/// If it can change while the worker runs, `configure` and `initialize` accept it under its name in camelCase, with the
/// suffix `Ms` for durations.
struct OptionDefinition: Sendable {
  enum Kind: Sendable {
    case flag(OptionPath<Bool>)
    case count(OptionPath<Int>, ClosedRange<Int>)
    /// A number, or `auto`.
    case limit(OptionPath<TransferLimit>, ClosedRange<Int>)
    case size(OptionPath<Int64>, ClosedRange<Int64>)
    /// Like `size`, but K, M and G are powers of 1000.
    case pixels(OptionPath<Int64>)
    case percent(OptionPath<Int>)
    case duration(OptionPath<Duration>)
    case text(OptionPath<String>, check: @Sendable (String) -> String?)
    /// Null in `configure` if it is not set.
    case optionalText(OptionPath<String?>, check: @Sendable (String) -> String?)
    /// Repeatable. With a separator, one value can contain several elements.
    case list(OptionPath<[String]>, separator: Character?, check: @Sendable (String) -> String?)
    case choice([String], get: @Sendable (Options) -> String, set: @Sendable (inout Options, String) -> Void)
  }

  let name: String
  let placeholder: String
  let kind: Kind
  let isRuntime: Bool
  /// Whether the value can contain a password and must not appear in messages.
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

  /// The name in `configure` and `initialize`.
  var member: String {
    let words = name.split(separator: "-")
    let camelCase = words[0] + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    if case .duration = kind { return camelCase + "Ms" }
    return String(camelCase)
  }

  /// The refused value for the end of a message; empty for a secret option.
  func quoted(_ value: String) -> String { isSecret ? "" : " (given: \"\(value.quotable)\")" }

  /// A choice among the cases of an enum.
  static func choice<Choice: RawRepresentable & CaseIterable & Sendable>(
    _ path: OptionPath<Choice>
  ) -> Kind where Choice.RawValue == String {
    .choice(
      Choice.allCases.map(\.rawValue), get: { $0[keyPath: path].rawValue },
      set: { options, name in Choice(rawValue: name).map { options[keyPath: path] = $0 } })
  }

  private static let anySize: ClosedRange<Int64> = 0...(1 << 60)
  /// The libraries need 48 MB, and a HEIC of 12 megapixels 112 MB with them.
  private static let minDecodeMemory: Int64 = 128 << 20

  /// All options of the worker, in the order of `--help`. No other place lists them.
  static let all: [OptionDefinition] = [
    .init(
      "cache-dir", "DIR", .optionalText(\.cacheDirectory, check: notEmpty), runtime: false,
      "directory of the disk cache [$XDG_CACHE_HOME/imageworker, else ~/.cache/imageworker]"),
    .init(
      "cache-namespace", "NAME", .text(\.cacheNamespace, check: checkNamespace), runtime: false,
      "subdirectory of the cache directory, for a separate cache [default]"),
    .init(
      "read-only-cache", "DIR", .list(\.readOnlyCaches, separator: nil, check: { _ in nil }), runtime: false,
      "further cache directory to read, never written; repeatable"),
    .init(
      "memory-limit", "SIZE", .size(\.memoryLimit, anySize),
      "bytes of image data in the memory tier; 0 turns it off [128M]"),
    .init(
      "disk-limit", "SIZE", .size(\.diskLimit, anySize),
      "allocated bytes of image and temporary files in the disk tier; 0 turns it off [1G]"),
    .init("max-age", "DURATION", .duration(\.maxAge), "age at which a cached image is always revalidated [7d]"),
    .init(
      "max-concurrent", "N|auto", .limit(\.maxConcurrent, 1...10_000),
      "max. concurrent transfers, all origins; auto adapts the number to the throughput [auto]"),
    .init(
      "max-per-host", "N|auto", .limit(\.maxPerHost, 1...10_000),
      "max. concurrent transfers per origin; auto adapts the number to the throughput [auto]"),
    .init(
      "max-connections-per-host", "N", .count(\.maxConnectionsPerHost, 0...10_000),
      "max. concurrent connections per origin (an HTTP/2 connection carries up to 100 transfers); 0 is unlimited [0]"),
    .init(
      "rate", "N/s", .optionalText(\.rate, check: { RequestRate.problem(in: $0) }),
      "max. requests per second and origin, evenly spaced, such as 5/s or 0.5/s"),
    .init("max-line", "SIZE", .size(\.maxLine, 1...(1 << 31)), runtime: false, "max. length of a request line [32M]"),
    .init("max-redirects", "N", .count(\.maxRedirects, 0...100), "max. redirects per load [10]"),
    .init(
      "max-queued", "N", .count(\.maxQueued, 0...100_000_000),
      "max. waiting loads; further ones fail with overloaded [1000000]"),
    .init("order", "fifo|lifo", choice(\.order), "order of waiting loads of equal priority [fifo]"),
    .init("timeout", "DURATION", .duration(\.timeout), "max. time without a received byte; 0 is unlimited [15s]"),
    .init(
      "connect-timeout", "DURATION", .duration(\.connectTimeout),
      "max. time for resolving, connecting and TLS; 0 is unlimited [10s]"),
    .init(
      "min-rate", "SIZE", .size(\.minRate, anySize),
      "min. bytes of a body per 30 seconds; 0 turns it off [1K]"),
    .init(
      "deadline", "DURATION", .duration(\.deadline),
      "max. time for a load, queueing and retries included; 0 is unlimited [0]"
    ),
    .init("retries", "N", .count(\.retries, 0...100), "further attempts after a retryable failure [2]"),
    .init(
      "failed-ttl", "DURATION", .duration(\.failedTimeToLive),
      "time for which a permanent failure is answered from memory; 0 turns it off [60s]"),
    .init(
      "max-bytes", "SIZE", .size(\.maxBytes, anySize),
      "max. size of a body; 0 refuses every body that is not empty [100M]"),
    .init(
      "max-pixels", "N", .pixels(\.maxPixels),
      "max. width x height x frames, decoded or encoded; K, M, G are powers of 1000 here [100M]"),
    .init(
      "decoders", "N", .count(\.decoders, 0...1024), runtime: false,
      "images that are decoded at once, by all workers of the cache directory; 0 is one per core [0]"),
    .init(
      "decoder-lifetime", "N", .count(\.decoderLifetime, 1...1_000_000), runtime: false,
      "images that a decoder process decodes before it ends [1]"),
    .init(
      "decode-timeout", "DURATION", .duration(\.decodeTimeout),
      "max. processor time for a decode; 0 is unlimited [10s]"),
    .init(
      "decode-memory", "SIZE", .size(\.decodeMemory, minDecodeMemory...1 << 60), runtime: false,
      "max. memory of a decoder process, from 128M [2G]"),
    .init(
      "min-free", "PERCENT", .percent(\.minFree),
      "free space below which the disk tier shrinks; the % is optional [5%]"),
    .init(
      "verify", "random|always|never", choice(\.verify),
      "when to verify the digest of a cached file; random is 1 % of the reads [random]"),
    .init(
      "resolver", "c-ares|system", choice(\.resolver),
      "c-ares queries the name servers, system calls getaddrinfo [c-ares]"),
    .init("network", "any|public", choice(\.network), "public refuses addresses that are not globally routable [any]"),
    .init(
      "robots", "obey|ignore", choice(\.robots), runtime: false,
      "obey loads what robots.txt, X-Robots-Tag and Content-Usage of the site allow [ignore]"),
    .init(
      "proxy", "URL", .optionalText(\.proxy, check: { TransportConfiguration.problem(inProxy: $0) }),
      secret: true, "as in curl; '' connects directly [http_proxy etc. of the environment]"),
    .init(
      "user-agent", "TEXT", .text(\.userAgent, check: checkUserAgent),
      "as in curl; '' sends none [ImageWorker/\(Version.current)]"),
    .init(
      "header", "'Name: value'", .list(\.headers, separator: nil, check: { HeaderOption.problem(in: $0) }),
      secret: true, "header field of every request; 'Name;' is sent empty, 'Name:' is left out; repeatable"),
    .init(
      "cookies", "FILE", .optionalText(\.cookies, check: notEmpty), runtime: false,
      "cookie file as for curl's --cookie, which must exist; read once, at the start"),
    .init(
      "files", "DIR", .optionalText(\.files, check: notEmpty), runtime: false,
      "folder below which files of the host must be, without links on the way [any place]"),
    .init("insecure", "", .flag(\.insecure), "accept any certificate"),
    .init(
      "key-ignore-query", "NAME", .list(\.keyIgnoredQuery, separator: nil, check: { _ in nil }),
      "query parameter to leave out of the cache key; * matches any text; repeatable"),
    .init(
      "events", "LIST", .list(\.events, separator: ",", check: { EventNames.check($0) }),
      "events to send for every request, separated by commas"),
    .init(
      "eof", "drain|cancel", choice(\.endOfInput),
      "at the end of input, finish or cancel the remaining requests [drain]"),
    .init("exit-status", "", .flag(\.exitStatus), "exit with 3 if any request failed"),
    .init(
      "log-level", "LEVEL", choice(\.logLevel),
      "error, warning, info or debug; the log goes to standard error [warning]"),
    .init("log-format", "text|json", choice(\.logFormat), "json writes a JSON object per line [text]"),
    .init(
      "metrics-file", "FILE", .optionalText(\.metricsFile, check: notEmpty), runtime: false,
      "file for the metrics, written every 10 s and at the end, for node_exporter; one for each worker"),
    .init(
      "trace", "FILE", .optionalText(\.trace, check: notEmpty), runtime: false,
      "file for a timeline of all loads, to open in Perfetto; %p is replaced by the process ID"),
    .init(
      "trace-limit", "SIZE", .size(\.traceLimit, TraceRecorder.minLimit...(1 << 40)), runtime: false,
      "max. size of a trace; the trace ends when it is reached [256M]"),
  ]

  static let notEmpty: @Sendable (String) -> String? = { $0.isEmpty ? "must not be empty" : nil }

  private static let checkNamespace: @Sendable (String) -> String? = {
    DiskTier.isValidNamespace($0) ? nil : "must be a valid folder name"
  }

  private static let checkUserAgent: @Sendable (String) -> String? = {
    RequestHeaders.problem(in: ["user-agent": $0]).map { "cannot be sent: \($0)" }
  }
}

internal import HTTPCaching
internal import ImageStore
internal import LineRPC
internal import Loading

/// The values of the options that only commands of `imageworker cache` have, and the operand of the command.
struct CommandOptions: Sendable {
  var operand: String?
  var json = false
  var text = false
  var sort = EntryOrder.key
  var reverse = false
  /// Zero if it is not given.
  var limit = 0
  var all = false
  var repair = false
  var cacheMode = CacheMode.default
  /// As JSON.
  var transform: String?
  var url: String?
  var key: String?
  var prefix: String?
  var host: String?
  /// A text that `Quantity.duration` reads.
  var olderThan: String?
  var expired = false
}

extension OptionDefinition {
  /// The option of the worker with this name, which must exist.
  ///
  /// - Parameter help: replaces the worker's text if that does not fit.
  static func worker(_ name: String, _ help: String? = nil) -> OptionDefinition {
    guard let option = all.first(where: { $0.name == name }) else {
      preconditionFailure("the worker has no option --\(name)")
    }
    return .init(name, option.placeholder, option.kind, secret: option.isSecret, help ?? option.help)
  }

  /// The options that every command has.
  static let ofAllCommands: [OptionDefinition] = [
    .worker("cache-dir"), .worker("cache-namespace"),
    .init("json", "", .flag(\.command.json), "write lines of JSON also to a terminal"),
    .init("text", "", .flag(\.command.text), "write text also into a pipe or a file"),
  ]

  static func limit(_ help: String) -> OptionDefinition {
    .init("limit", "N", .count(\.command.limit, 1...1_000_000_000), help)
  }

  /// The options that select entries, as the filters of the method `clear` do.
  static let filters: [OptionDefinition] = [
    .init("url", "URL", .optionalText(\.command.url, check: notEmpty), "entries of this URL, and of its key"),
    .init("key", "KEY", .optionalText(\.command.key, check: notEmpty), "entries of this key"),
    .init(
      "prefix", "TEXT", .optionalText(\.command.prefix, check: notEmpty), "entries whose keys begin with this text"),
    .init(
      "host", "HOST",
      .optionalText(
        \.command.host,
        check: { ClearFilter.host($0) == nil ? ClearFilter.hostRule : nil }),
      "entries of URLs of this host, or HOST:PORT"),
    .init(
      "older-than", "DURATION",
      .optionalText(\.command.olderThan, check: { Quantity.duration($0) == nil ? Quantity.durationRule : nil }),
      "entries that were stored at least this long ago, such as 30d"),
    .init("expired", "", .flag(\.command.expired), "entries that are not fresh any more"),
    .worker("key-ignore-query", "query parameter that the worker leaves out of keys, for --url; repeatable"),
  ]
}

extension Options {
  /// The filter of the options of a command; nil if none is given. An entry must match all that are given.
  func filter() throws(ExitError) -> ClearFilter? {
    var filters: [ClearFilter] = []
    if let url = command.url { filters.append(.url(url, key: try request(for: url).key)) }
    if let key = command.key { filters.append(.key(key)) }
    if let prefix = command.prefix { filters.append(.prefix(prefix)) }
    if let host = command.host.flatMap({ ClearFilter.host($0) }) { filters.append(host) }
    if let age = command.olderThan.flatMap({ Quantity.duration($0) }) {
      filters.append(.olderThan(seconds: Int(age.components.seconds)))
    }
    if command.expired { filters.append(.expired) }
    return filters.count > 1 ? .every(filters) : filters.first
  }

  /// The load of a URL with these options.
  func request(for url: String) throws(ExitError) -> LoadRequest {
    do throws(RPCError) {
      return try LoadParameters.request(for: url, key: nil, LoadDefaults(self))
    } catch {
      throw .usage("\(url.quotable) is not a URL that can be loaded: \(error.message)")
    }
  }
}

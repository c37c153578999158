internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading

/// The options that select entries, as the filters of the method `clear` do.
enum FilterOptions {
  static let all: [CommandOption] = [
    CommandOption("url", "URL", .text(check: notEmpty), "entries of this URL, and of its key"),
    CommandOption("key", "KEY", .text(check: notEmpty), "entries of this key"),
    CommandOption("prefix", "TEXT", .text(check: notEmpty), "entries whose keys begin with this text"),
    CommandOption("host", "HOST", .text(check: checkHost), "entries of URLs of this host, or HOST:PORT"),
    CommandOption("older-than", "DURATION", .duration, "entries that were stored at least this long ago"),
    CommandOption("expired", "", .flag, "entries that are not fresh any more"),
    .ofWorker("key-ignore-query", "query parameter that the worker leaves out of keys, for --url; repeatable"),
  ]

  /// The filter of the options; nil if none is given. An entry must match all that are given.
  static func filter(_ arguments: CommandArguments, of command: String) throws(CommandError) -> ClearFilter? {
    var filters: [ClearFilter] = []
    if let url = arguments.text("url") {
      filters.append(.url(url, key: try arguments.request(for: url, of: command).key))
    }
    if let key = arguments.text("key") { filters.append(.key(key)) }
    if let prefix = arguments.text("prefix") { filters.append(.prefix(prefix)) }
    if let host = arguments.text("host").flatMap({ ClearFilter.host($0) }) { filters.append(host) }
    if let seconds = arguments.seconds("older-than") { filters.append(.olderThan(seconds: seconds)) }
    if arguments.has("expired") { filters.append(.expired) }
    return filters.count > 1 ? .every(filters) : filters.first
  }

  private static let notEmpty: @Sendable (String) -> String? = { $0.isEmpty ? "must not be empty" : nil }

  private static let checkHost: @Sendable (String) -> String? = {
    ClearFilter.host($0) == nil ? "must be a host name or name:port, without a scheme and a path" : nil
  }
}

extension ClearFilter {
  /// The filter of `name` or `name:port`, with an IPv6 address in brackets; nil for any other text.
  static func host(_ text: String) -> ClearFilter? {
    guard let url = try? ResourceURL("http://\(text)/"), url.userInfo == nil, url.requestTarget == "/",
      !text.contains("#"), text.last != ":"
    else { return nil }
    let hasPort = text.last != "]" && text.contains(":")
    return .host(url.host, port: hasPort ? url.port : nil)
  }
}

internal import HTTPTypes

/// The addresses that curl has been told, as lines of CURLOPT_RESOLVE. Pure.
///
/// Curl keeps them in a cache that all its handles share, and finds them there when it connects. They stay there while
/// a hop may need them, and are taken out with one of the next hops.
struct AddressesInCurl {
  /// The number of hops that use an entry.
  private var users: [String: Int] = [:]
  private var unused: Set<String> = []

  /// The name of an origin's entry in curl.
  static func key(_ origin: Origin) -> String { "\(origin.host):\(origin.port)" }

  /// The lines for a hop: which entries are needed no longer, and the host's addresses in place of those that curl has.
  mutating func begin(_ key: String, _ addresses: [IPAddress]) -> [String] {
    users[key, default: 0] += 1
    unused.remove(key)
    defer { unused.removeAll(keepingCapacity: true) }
    let list = addresses.map { $0.bytes.count == 4 ? $0.text : "[\($0.text)]" }.joined(separator: ",")
    return unused.map { "-\($0)" } + ["\(key):\(list)"]
  }

  /// A hop has ended.
  mutating func end(_ key: String) {
    guard let count = users[key] else { return }
    users[key] = count > 1 ? count - 1 : nil
    if count == 1 { unused.insert(key) }
  }
}

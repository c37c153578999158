/// The addresses that curl was given, as lines for CURLOPT_RESOLVE. Pure.
///
/// Curl keeps them in a cache that all its handles share, and reads them when it connects. An entry stays as long as a
/// hop may need it, and is removed with one of the next hops.
struct AddressesInCurl {
  /// Number of hops that use an entry.
  private var users: [String: Int] = [:]
  private var unused: Set<String> = []

  /// The lines for a hop: they remove the entries that are no longer needed, and set the host's addresses.
  ///
  /// - Parameter key: host and port.
  mutating func begin(_ key: String, _ addresses: [IPAddress]) -> [String] {
    users[key, default: 0] += 1
    unused.remove(key)
    defer { unused.removeAll(keepingCapacity: true) }
    let list = addresses.map { $0.bytes.count == 4 ? $0.text : "[\($0.text)]" }.joined(separator: ",")
    return unused.map { "-\($0)" } + ["\(key):\(list)"]
  }

  /// Ends a hop's use of an entry.
  mutating func end(_ key: String) {
    guard let count = users[key] else { return assertionFailure("a hop must begin to use an entry before it ends") }
    users[key] = count > 1 ? count - 1 : nil
    if count == 1 { unused.insert(key) }
  }
}

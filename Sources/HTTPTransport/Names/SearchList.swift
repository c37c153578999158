/// The search domains of resolv.conf(5).
struct SearchList: Hashable {
  var domains: [String] = []
  /// A name with at least this number of dots is first asked unchanged.
  var minDots = 1

  /// The names to ask, one after the other, until one has an address.
  func candidates(for name: String) -> [String] {
    if name.hasSuffix(".") { return [name] }
    let inDomains = domains.map { $0 == "." ? name : name + "." + $0 }
    let isAsItIsFirst = name.utf8.count { $0 == UInt8(ascii: ".") } >= minDots
    return isAsItIsFirst ? [name] + inDomains : inDomains + [name]
  }
}

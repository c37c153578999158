/// The domains in which a name may be meant, as resolv.conf(5) has them.
struct SearchList: Hashable {
  var domains: [String] = []
  /// A name with at least so many dots is asked for as it is first.
  var minDots = 1

  /// The names to ask for one after the other, until one has an address.
  func candidates(for name: String) -> [String] {
    if name.hasSuffix(".") { return [name] }
    let inDomains = domains.map { $0 == "." ? name : name + "." + $0 }
    let isAsItIsFirst = name.utf8.count { $0 == UInt8(ascii: ".") } >= minDots
    return isAsItIsFirst ? [name] + inDomains : inDomains + [name]
  }
}

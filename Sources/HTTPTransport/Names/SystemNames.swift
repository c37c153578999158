internal import Platform

/// The name lookup of the system, for what curl does not tell about its own.
enum SystemNames {
  /// Finds out whether it is certain that a name has no address. Calls getaddrinfo(3), which may take long, on a thread
  /// of its own.
  ///
  /// - Parameter completion: called once, on any thread.
  static func findAbsence(of name: String, _ completion: @escaping @Sendable (Bool) -> Void) {
    let thread = PosixThread(name: "name lookup") {
      var addresses: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(name, nil, nil, &addresses)
      if let addresses { freeaddrinfo(addresses) }
      completion(isNoAddress(status))
    }
    if let thread { thread.detach() } else { completion(false) }
  }
}

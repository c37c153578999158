#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The number of the process's file descriptors that idle connections may hold.
enum DescriptorLimit {
  /// The most connections, those in use included, up to which idle ones are kept open.
  ///
  /// A quarter of the descriptors: the rest is for the sockets and files of transfers, for the resolver, which takes two
  /// for each name that it looks up, for the cache and for the decoders.
  static func maxConnections(descriptors: Int) -> Int { max(1, descriptors / 4) }

  /// The soft limit of this process; no limit is `Int.max`.
  static var current: Int {
    var limit = rlimit()
    #if canImport(Darwin)
      guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return .max }
    #else
      guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
    #endif
    return Int(clamping: limit.rlim_cur)
  }
}

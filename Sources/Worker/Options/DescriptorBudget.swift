#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// How many transfers, connections and files the file descriptors of the process are enough for.
///
/// Each transfer counts for six: two connections, of which one may be idle; two files, of which one belongs to a body
/// that has arrived and is on its way to the disk; and two for what lasts only for a moment, the look-up of a name or a
/// second address that is tried.
struct DescriptorBudget: Equatable {
  /// The most transfers at once.
  let transfers: Int
  /// The most open connections, idle ones included.
  var connections: Int { 2 * transfers }
  /// The most bodies that have arrived and are on their way to the disk.
  var finishing: Int { transfers }

  /// The rest is for the streams, the index, locks and files that are read, and three for each decoder: its socket, the
  /// source and the output. It takes no more than half of all.
  ///
  /// - Parameter descriptors: as many as the process may have.
  init(descriptors: Int, decoders: Int) {
    let rest = min(40 + 3 * decoders, descriptors / 2)
    transfers = max(1, (descriptors - rest) / 6)
  }

  /// The budget under the soft limit of this process (RLIMIT_NOFILE), with as many decoders as processors.
  static var current: DescriptorBudget {
    var limit = rlimit()
    let isKnown = getrlimit(descriptorCount, &limit) == 0
    return DescriptorBudget(
      descriptors: isKnown ? Int(clamping: limit.rlim_cur) : .max, decoders: Processors.count)
  }

  /// Raises the soft limit as far as the system allows.
  static func raise() {
    var limit = rlimit()
    guard getrlimit(descriptorCount, &limit) == 0 else { return }
    limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, mostDescriptors))
    _ = setrlimit(descriptorCount, &limit)
  }
}

#if canImport(Darwin)
  private let descriptorCount = RLIMIT_NOFILE
  /// More is refused as a whole.
  private let mostDescriptors = rlim_t(OPEN_MAX)
#else
  private let descriptorCount = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  private let mostDescriptors = rlim_t.max
#endif

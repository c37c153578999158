internal import CSystem

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// How many processors there are for this process to use.
enum Processors {
  /// Those that the process may run on (sched_getaffinity(2)), where the system tells; else those that are there.
  static var count: Int {
    let allowed = Int(csystem_allowed_processors())
    return allowed > 0 ? allowed : max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
  }
}

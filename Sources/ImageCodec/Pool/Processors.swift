internal import CSystem
internal import Platform

/// The processors that this process may use.
package enum Processors {
  /// The number of processors in the affinity mask (sched_getaffinity(2)) if the system has one, else of those online.
  package static var count: Int {
    let allowed = Int(csystem_allowed_processors())
    return allowed > 0 ? allowed : max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
  }
}

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// How many processors there are for this process to use.
enum Processors {
  static var count: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

enum ProcessMemory {
  /// The resident set size in bytes; its maximum so far if the system does not report the current size.
  static var residentBytes: Int64 {
    #if os(Linux)
      let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
      if file >= 0 {
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 128)
        let count = read(file, &buffer, buffer.count)
        let fields = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
        if fields.count > 1, let pages = Int64(fields[1]) { return pages * Int64(getpagesize()) }
      }
    #endif
    var usage = rusage()
    #if canImport(Darwin)
      getrusage(RUSAGE_SELF, &usage)
      return Int64(usage.ru_maxrss)
    #else
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return Int64(usage.ru_maxrss) * 1024
    #endif
  }
}

enum WallClock {
  /// The Unix time in seconds of an instant of the monotonic clock.
  static func seconds(at instant: ContinuousClock.Instant) -> Int {
    time(nil) + Int(ContinuousClock.now.duration(to: instant).components.seconds)
  }
}

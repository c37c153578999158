/// The arguments of the command line after the name of the program, from the parameters of a C `main`.
public func commandLine(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> [String] {
  (1..<max(1, Int(count))).compactMap { arguments[$0].map { String(cString: $0) } }
}

#if canImport(Darwin)
  private let descriptorResource = RLIMIT_NOFILE
  /// Setrlimit refuses more than this.
  private let maxDescriptors = rlim_t(OPEN_MAX)
#else
  private let descriptorResource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  private let maxDescriptors = rlim_t.max
#endif

/// The soft limit of file descriptors of this process; nil if the system does not tell it.
public func descriptorLimit() -> Int? {
  var limit = rlimit()
  return getrlimit(descriptorResource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : nil
}

/// Raises the soft limit of file descriptors as far as the system allows.
public func raiseDescriptorLimit() {
  var limit = rlimit()
  guard getrlimit(descriptorResource, &limit) == 0 else { return }
  limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, maxDescriptors))
  _ = setrlimit(descriptorResource, &limit)
}

/// The number of descriptors that this process has open; nil if the system does not tell it.
public func openDescriptorCount() -> Int? {
  #if canImport(Darwin)
    let folder = opendir("/dev/fd")
  #else
    let folder = opendir("/proc/self/fd")
  #endif
  guard let folder else { return nil }
  defer { closedir(folder) }
  var count = 0
  while readdir(folder) != nil { count += 1 }
  // Without `.`, `..` and the descriptor of the folder.
  return count - 3
}

/// The processor time of all threads of this process in seconds, those that have ended included.
public func processorSeconds() -> Double {
  var usage = rusage()
  #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
  #else
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  #endif
  let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
  return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The memory that this process occupies, in bytes; its peak on systems that do not tell the present value.
public func residentBytes() -> Int64 {
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

/// Asks for large pages, which the system clears faster than small ones. `memory` must begin with such a page.
public func useLargePages(_ memory: UnsafeMutableRawPointer?, _ count: Int) {
  #if os(Linux)
    madvise(memory, count, Int32(MADV_HUGEPAGE))
  #endif
}

#if os(Linux)
  internal import CStart
#endif

extension stat {
  public var modificationTime: timespec {
    #if canImport(Darwin)
      st_mtimespec
    #else
      st_mtim
    #endif
  }
}

/// The flags of openat(2) for a file without a name that goes with its descriptor (O_TMPFILE, a macro that Swift does
/// not import). Such a file is given a name by way of /proc. nil on systems without such files.
public let unnamedFileFlags: Int32? = {
  #if os(Linux)
    O_RDWR | O_CLOEXEC | O_DIRECTORY | 0o20_000_000
  #else
    nil
  #endif
}()

/// write(2), under a name that methods called `write` do not hide.
public func writeDescriptor(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}

/// Repeats a system call while a signal interrupts it (EINTR). Other errors are left in `errno`.
///
/// - Parameter call: returns a negative number after an error.
@inlinable @inline(__always)
public func retryingOnInterrupt<Result: SignedInteger>(_ call: () -> Result) -> Result {
  while true {
    let result = call()
    if result >= 0 || errno != EINTR { return result }
  }
}

/// The path of the file that this process runs; nil if the system does not tell it, or if it is not UTF-8.
public func pathOfThisExecutable() -> String? {
  var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
  #if canImport(Darwin)
    var size = UInt32(buffer.count)
    guard _NSGetExecutablePath(&buffer, &size) == 0, let path = realpath(buffer, nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  #else
    let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    if length > 0 { return String(validating: buffer.prefix(length), as: UTF8.self) }
    // /proc is not mounted.
    guard let path = realpath(cstart_name(), nil) else { return nil }
    defer { free(path) }
    return String(validatingCString: path)
  #endif
}

/// The path of a file or folder that a release brings beside the program; nil if there is none.
public func pathInRelease(_ name: String) -> String? {
  guard let program = pathOfThisExecutable(), let slash = program.lastIndex(of: "/") else { return nil }
  let path = "\(program[...slash])\(name)"
  return access(path, R_OK) == 0 ? path : nil
}

/// The file name of a shared library of the system, such as `libheif.so.1`.
public func sharedLibrary(_ name: String, version: Int) -> String {
  #if canImport(Darwin)
    "\(name).\(version).dylib"
  #else
    "\(name).so.\(version)"
  #endif
}

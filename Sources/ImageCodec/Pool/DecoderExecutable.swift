#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The location of the decoder's executable.
enum DecoderExecutable {
  static let name = "imageworker-codec"

  /// Returns the decoder beside the running executable, whatever that is called. Nil if it does not exist.
  static func find() -> String? {
    guard let executable = ownPath(), let slash = executable.lastIndex(of: "/") else { return nil }
    let path = "\(executable[...slash])\(name)"
    return access(path, X_OK) == 0 ? path : nil
  }

  private static func ownPath() -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    #if canImport(Darwin)
      var size = UInt32(buffer.count)
      guard _NSGetExecutablePath(&buffer, &size) == 0, let path = realpath(buffer, nil) else { return nil }
      defer { free(path) }
      return String(cString: path)
    #else
      let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
      return length > 0 ? String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    #endif
  }
}

internal import CCurl
internal import HTTPTypes

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The names and addresses of a file as hosts(5) describes it.
struct HostsFile {
  private var addresses: [String: [IPAddress]] = [:]

  init() {}

  /// Lines that cannot be read are left out.
  init(_ text: some Sequence<UInt8>) {
    for line in Array(text).split(separator: UInt8(ascii: "\n")) {
      let words = line.prefix { $0 != UInt8(ascii: "#") }
        .split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
      guard words.count >= 2, let address = IPAddress(String(decoding: words[0], as: UTF8.self)) else { continue }
      for word in words.dropFirst() {
        addresses[String(decoding: word.map(\.asciiLowercased), as: UTF8.self), default: []].append(address)
      }
    }
  }

  /// Those of all lines that have the name; empty where none has.
  ///
  /// - Parameter name: in lower case.
  subscript(name: String) -> [IPAddress] { addresses[name.hasSuffix(".") ? String(name.dropLast()) : name] ?? [] }
}

/// A file that is read again when it has changed.
struct WatchedFile {
  private struct Identity: Equatable {
    var device: UInt64
    var inode: UInt64
    var size: Int64
    var seconds: Int
    var nanoseconds: Int
  }

  let path: String
  private var identity: Identity?
  private var hasLooked = false
  private var lookedAt = ContinuousClock.now

  init(path: String) {
    self.path = path
  }

  /// What the file holds if it has changed since the last call; nothing if it is not there. Nil if it has not changed
  /// or cannot be read now.
  mutating func change(now: ContinuousClock.Instant) -> [UInt8]? {
    guard hasChanged(now: now) else { return nil }
    if identity == nil { return [] }
    let bytes = read()
    // Out of descriptors, perhaps: the next look is to find it changed.
    if bytes == nil { identity = nil }
    return bytes
  }

  /// Whether the file is another one than at the last call, or this is the first; it looks once a second at most.
  mutating func hasChanged(now: ContinuousClock.Instant) -> Bool {
    if hasLooked, lookedAt.duration(to: now) < .seconds(1) { return false }
    lookedAt = now
    let current = Self.identity(of: path)
    defer { (identity, hasLooked) = (current, true) }
    return !hasLooked || current != identity
  }

  private func read() -> [UInt8]? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
  }

  private static func identity(of path: String) -> Identity? {
    var info = stat()
    guard stat(path, &info) == 0 else { return nil }
    #if canImport(Darwin)
      let time = info.st_mtimespec
    #else
      let time = info.st_mtim
    #endif
    return Identity(
      device: UInt64(truncatingIfNeeded: info.st_dev), inode: UInt64(info.st_ino), size: Int64(info.st_size),
      seconds: time.tv_sec, nanoseconds: time.tv_nsec)
  }
}

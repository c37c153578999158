import Foundation
import Testing

@testable import ImageStore

struct FileVersionTests {
  private static let second: Int64 = 1_000_000_000

  /// A file that was written and changed at these times, in nanoseconds.
  private func status(inode: UInt64 = 7, size: Int = 100, written: Int64 = 0, changed: Int64 = 0) -> stat {
    var status = stat()
    (status.st_dev, status.st_ino, status.st_size) = (3, .init(inode), .init(size))
    status.st_mtim = timespec(tv_sec: Int(written / Self.second), tv_nsec: Int(written % Self.second))
    status.st_ctim = timespec(tv_sec: Int(changed / Self.second), tv_nsec: Int(changed % Self.second))
    return status
  }

  @Test func `the tag tells versions apart by each property`() {
    let versions = [
      status(), status(inode: 8), status(size: 101), status(written: 1), status(changed: 1),
      status(written: Self.second), status(changed: Self.second),
    ].map { FileVersion($0, now: 0).tag }
    #expect(Set(versions).count == versions.count)
    #expect(versions[0] == "\"3-7-100-0-0\"")
    #expect(FileVersion(status(), now: 0).tag == FileVersion(status(), now: .max).tag)
  }

  @Test func `a file is settled two seconds after the last write`() {
    let written = 100 * Self.second
    for (now, isSettled) in [
      (written, false), (written + 2 * Self.second - 1, false), (written + 2 * Self.second, true),
      (written - 1, false), (0, false), (Int64.max, true), (Int64.min, false),
    ] {
      #expect(FileVersion(status(written: written), now: now).isSettled == isSettled, "\(now)")
    }
    #expect(FileVersion(status(written: -Self.second), now: .max).isSettled)
  }

  @Test(arguments: [
    ("/photos/cat.jpg", "file:///photos/cat.jpg"),
    ("//photos/.//./cat.jpg", "file:///photos/cat.jpg"),
    ("/a b/ü?#%&@:+[].jpg", "file:///a%20b/%C3%BC%3F%23%25%26%40%3A%2B%5B%5D.jpg"),
    ("/-._~AZaz09", "file:///-._~AZaz09"), ("/a\n\"", "file:///a%0A%22"),
  ]) func `the URL of a path`(path: String, url: String) {
    #expect(HostPlace(.path(path)).url == url)
    #expect(HostPlace(.beneath(String(path.drop { $0 == "/" }), folder: "/")).url == url)
  }

  @Test func `a file of another version is not read`() throws {
    let path = NSTemporaryDirectory() + "/version-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data("one".utf8).write(to: URL(filePath: path))
    let place = try HostPlace(.path(path)).identified()
    #expect(try HostFile(place).read(at: 0, count: 3) == Array("one".utf8))
    try Data("another".utf8).write(to: URL(filePath: path))
    let error = #expect(throws: StoreError.self) { try HostFile(place) }
    #expect(error?.kind == .changed)
  }

  @Test func `a write that gives the file its old time is seen by loads of a version`() throws {
    let path = NSTemporaryDirectory() + "/version-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data("one".utf8).write(to: URL(filePath: path))
    let old = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)]
    try FileManager.default.setAttributes(old, ofItemAtPath: path)
    let place = HostPlace(.path(path))
    let (versioned, plain) = (try HostFile(try place.identified()), try HostFile(place))
    try versioned.checkUnchanged()
    // The time of the change must be another one.
    usleep(20_000)
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.write(contentsOf: Data("two".utf8))
    try file.close()
    try FileManager.default.setAttributes(old, ofItemAtPath: path)
    let error = #expect(throws: StoreError.self) { try versioned.checkUnchanged() }
    #expect(error?.kind == .changed)
    // `process` copies once, and compares the size and the time of the last write.
    try plain.checkUnchanged()
  }

  @Test func `the permitted folder itself is no file`() throws {
    let folder = try PermittedFolder(NSTemporaryDirectory())
    for path in [NSTemporaryDirectory(), NSTemporaryDirectory() + "/."] {
      let error = #expect(throws: StoreError.self) { try HostFile(HostPlace(.path(path), permitted: folder)) }
      #expect(error?.message.hasSuffix("must be a regular file") == true)
    }
  }
}

import Testing

@testable import Recording

@Suite struct WorkerPathsTests {
  private func paths(host: String? = nil) -> WorkerPaths {
    WorkerPaths(cache: "/tmp/c", scratch: "/tmp/imageworker-0", pixels: "/dev/shm/imageworker-0", host: host)
  }

  @Test(arguments: [
    ("/tmp/c", "{cache}"), ("/tmp/c/default/a.png", "{cache}/default/a.png"), ("/tmp/cc/a", "/tmp/cc/a"),
    ("/tmp/imageworker-0/12-0a/7.png", "{scratch}/7.png"),
    ("/dev/shm/imageworker-0/12-0a/7.pixels", "{pixels}/7.pixels"),
    ("/tmp/c/a is missing, /tmp/c/b too", "{cache}/a is missing, {cache}/b too"), ("a/b", "a/b"), ("", ""),
  ])
  func `folders of the worker get names`(path: String, name: String) {
    var paths = paths()
    #expect(paths.general(path) == name)
    #expect(paths.general(name) == name)
  }

  @Test func `a name becomes the folder of this process`() {
    var paths = paths()
    #expect(paths.local("{pixels}/1.pixels") == "/dev/shm/imageworker-0/none/1.pixels")
    _ = paths.general("/dev/shm/imageworker-0/34-56/1.pixels")
    #expect(paths.local("{pixels}/1.pixels") == "/dev/shm/imageworker-0/34-56/1.pixels")
    #expect(paths.local("{cache}/a") == "/tmp/c/a")
    #expect(paths.local("/a") == "/a")
  }

  @Test func `the folder for the host's files disappears`() {
    var paths = paths(host: "/tmp/replay/files")
    #expect(
      paths.general("cannot write /tmp/replay/files/home/a.png: it must be a regular file")
        == "cannot write /home/a.png: it must be a regular file")
  }
}

import Foundation
import Testing
import Threads

@testable import ImageStore

@Suite struct ScratchTests {
  private func makeScratch(_ fixture: Fixture, files: FileSystem = FileSystem()) -> ScratchFolder {
    ScratchFolder(
      parent: fixture.directory + "/scratch", executor: fixture.executor, environment: fixture.environment(files))
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test func `a scratch file is kept for 60 s after its last delivery`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture)
    let path = try await scratch.store(.bytes([1, 2]), format: .png)
    #expect(path.hasSuffix(".png"))
    #expect(try [UInt8](Data(contentsOf: URL(filePath: path))) == [1, 2])
    fixture.advance(40)
    await scratch.markDelivered(path, at: fixture.now)
    fixture.advance(60)
    let wake = await scratch.runMaintenance()
    #expect(wake != nil)
    #expect(exists(path))
    fixture.advance(1)
    #expect(await scratch.runMaintenance() == nil)
    #expect(!exists(path))
  }

  @Test func `a folder that a cleaner has deleted is created again`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture)
    let first = try await scratch.store(.bytes([1]), format: .png)
    await scratch.addReader(of: first)
    try FileManager.default.removeItem(atPath: fixture.directory + "/scratch")
    let second = try await scratch.store(.bytes([2]), format: .png)
    #expect(exists(second) && !exists(first))
    await scratch.removeReader(of: first, removing: true)
    fixture.advance(61)
    #expect(await scratch.runMaintenance() == nil)
    #expect(!exists(second))
  }

  @Test func `a file with readers outlives its 60 s`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture)
    let path = try await scratch.store(.bytes([1, 2]), format: .png)
    let unshared = try await scratch.store(.bytes([3]), format: .png)
    for path in [path, path, unshared] { await scratch.addReader(of: path) }
    for _ in 0..<3 {
      fixture.advance(61)
      #expect(await scratch.runMaintenance() != nil)
      #expect(exists(path) && exists(unshared))
    }
    await scratch.removeReader(of: path, removing: true)
    await scratch.removeReader(of: unshared, removing: true)
    #expect(exists(path) && !exists(unshared), "another still works on the one")
    fixture.advance(61)
    _ = await scratch.runMaintenance()
    await scratch.removeReader(of: path, removing: false)
    fixture.advance(60)
    _ = await scratch.runMaintenance()
    #expect(exists(path))
    fixture.advance(1)
    #expect(await scratch.runMaintenance() == nil)
    #expect(!exists(path))
    await scratch.removeReader(of: path, removing: false)
    #expect(await scratch.runMaintenance() == nil)
  }

  @Test func `a spool of the scratch folder or of the disk tier becomes a scratch file`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture)
    let tier = try await fixture.openTier()
    for spool in [try await scratch.makeSpool(), try await tier.makeSpool(expected: 10)] {
      try await spool.append(bytes(300_000))
      try await spool.append([9])
      let path = try await scratch.store(.spool(spool), format: .gif)
      #expect(try [UInt8](Data(contentsOf: URL(filePath: path))) == bytes(300_000) + [9])
    }
    #expect(await tier.counts.bytes == 0)
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `closing keeps recently delivered files, and a later process removes them`() async throws {
    let fixture = Fixture()
    fixture.clock.withLock { $0 = Int(Date().timeIntervalSince1970) + 1 }
    let first = makeScratch(fixture)
    let path = try await first.store(.bytes([1]), format: nil)
    await first.close()
    #expect(exists(path))
    let second = makeScratch(fixture)
    #expect(await second.runMaintenance() != nil)
    #expect(exists(path))
    fixture.advance(62)
    #expect(await second.runMaintenance() == nil)
    #expect(!exists(path))
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/scratch").isEmpty)
  }

  @Test func `the folder of a living process is not removed`() async throws {
    let fixture = Fixture()
    let living = makeScratch(fixture)
    let path = try await living.store(.bytes([1]), format: nil)
    fixture.advance(1_000_000_000)
    _ = await makeScratch(fixture).runMaintenance()
    #expect(exists(path))
  }

  @Test func `closing removes a folder without live files`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture)
    _ = try await scratch.store(.bytes([1]), format: nil)
    fixture.advance(61)
    await scratch.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/scratch").isEmpty)
  }

  @Test func `an empty folder without a lock is removed once it is old`() async throws {
    let fixture = Fixture()
    fixture.clock.withLock { $0 = Int(Date().timeIntervalSince1970) + 1 }
    let folder = fixture.directory + "/scratch/1-00000000"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    _ = await makeScratch(fixture).runMaintenance()
    #expect(exists(folder))
    fixture.advance(62)
    _ = await makeScratch(fixture).runMaintenance()
    #expect(!exists(folder))
  }

  @Test(arguments: [FileSystem.Operation.open, .create])
  func `no folder is left behind if no descriptor is available`(operation: FileSystem.Operation) async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture, files: FileSystem { $0 == operation ? EMFILE : nil })
    await #expect(throws: StoreError.self) { try await scratch.store(.bytes([1]), format: nil) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/scratch").isEmpty)
  }

  @Test func `a folder that other users may write is not used`() async throws {
    let fixture = Fixture()
    mkdir(fixture.directory + "/scratch", 0o777)
    chmod(fixture.directory + "/scratch", 0o777)
    let error = await #expect(throws: StoreError.self) {
      try await makeScratch(fixture).store(.bytes([1]), format: nil)
    }
    #expect(error?.kind == .io)
  }

  @Test func `a full disk is reported as such`() async throws {
    let fixture = Fixture()
    let scratch = makeScratch(fixture, files: FileSystem { $0 == .write ? ENOSPC : nil })
    let error = await #expect(throws: StoreError.self) { try await scratch.store(.bytes([1]), format: nil) }
    #expect(error?.kind == .diskFull)
  }
}

@Suite struct SaveToTests {
  @Test func `a pipe is not replaced by a copy`() throws {
    let fixture = Fixture()
    try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
    let pipe = fixture.directory + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(throws: StoreError.self) { try save(copyOf: .bytes([1]), to: pipe) }
    #expect(try FileManager.default.attributesOfItem(atPath: pipe)[.type] as? FileAttributeType != .typeRegular)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: fixture.directory).contains { $0.hasSuffix(".tmp") } == false)
  }

  @Test func `a copy has the demanded mode, whatever the umask is`() throws {
    let fixture = Fixture()
    try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
    let target = fixture.directory + "/out.txt"
    for mode: UInt16 in [0o604, 0o666] {
      try save(copyOf: .bytes([1]), to: target, mode: mode)
      #expect(try FileManager.default.attributesOfItem(atPath: target)[.posixPermissions] as? UInt16 == mode)
    }
  }

  @Test func `a copy of bytes or of a file replaces the target completely`() throws {
    let fixture = Fixture()
    let target = fixture.directory + "/out.jpg"
    try save(copyOf: .bytes(bytes(300_000)), to: target)
    #expect(try [UInt8](Data(contentsOf: URL(filePath: target))) == bytes(300_000))
    let second = fixture.directory + "/second.jpg"
    try save(copyOf: .bytes([1]), to: second)
    try save(copyOf: .file(target), to: second)
    #expect(try Data(contentsOf: URL(filePath: second)) == Data(contentsOf: URL(filePath: target)))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: fixture.directory).sorted() == ["out.jpg", "second.jpg"])
  }

  @Test func `a copy that fails at any operation leaves only the old file`() throws {
    let fixture = Fixture()
    let target = fixture.directory + "/out.jpg"
    try save(copyOf: .bytes([1]), to: target)
    for operation in [FileSystem.Operation.create, .write, .rename] {
      let environment = fixture.environment(FileSystem { $0 == operation ? ENOSPC : nil })
      let error = #expect(throws: StoreError.self) {
        try save(copyOf: .bytes([2]), to: target, environment: environment)
      }
      #expect(error?.kind == .diskFull)
      #expect(error?.message.contains(target) == true)
      #expect(try [UInt8](Data(contentsOf: URL(filePath: target))) == [1])
      #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory) == ["out.jpg"])
    }
  }

  #if os(Linux)
    @Test func `a copy has no name before it is complete, and leaves none if naming fails`() throws {
      let fixture = Fixture()
      try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
      let names = Locked<[[String]]>([])
      let creations = Locked(0)
      let environment = fixture.environment(
        FileSystem { [directory = fixture.directory] operation in
          if operation == .write {
            names.withLock { $0.append((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []) }
          }
          if operation == .create { creations.withLock { $0 += 1 } }
          return operation == .create && creations.withLock { $0 } == 2 ? EIO : nil
        })
      #expect(throws: StoreError.self) {
        try save(copyOf: .bytes([2]), to: fixture.directory + "/out.jpg", environment: environment)
      }
      #expect(names.withLock { $0 } == [[]])
      #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory).isEmpty)
    }
  #endif

  @Test(arguments: ["pipe", "link"])
  func `an existing target that is not a regular file stays`(name: String) throws {
    let fixture = Fixture()
    let pipe = fixture.directory + "/pipe"
    mkfifo(pipe, 0o600)
    symlink(pipe, fixture.directory + "/link")
    let error = #expect(throws: StoreError.self) { try save(copyOf: .bytes([1]), to: fixture.directory + "/" + name) }
    #expect(error?.kind == .io)
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory).sorted() == ["link", "pipe"])
    var status = stat()
    #expect(lstat(pipe, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test func `a link stays, and the regular file at its end is replaced`() throws {
    let fixture = Fixture()
    let folder = fixture.directory
    let manager = FileManager.default
    try manager.createDirectory(atPath: folder + "/elsewhere", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(filePath: folder + "/elsewhere/file"))
    symlink("elsewhere/second", folder + "/first")
    symlink(folder + "/elsewhere/file", folder + "/elsewhere/second")
    symlink("elsewhere", folder + "/folder")
    for (count, path) in ["/first", "/elsewhere/second", "/folder/second", "/folder/file"].enumerated() {
      try save(copyOf: .bytes([2, UInt8(count)]), to: folder + path)
      #expect(try [UInt8](Data(contentsOf: URL(filePath: folder + "/elsewhere/file"))) == [2, UInt8(count)])
    }
    for link in ["/first", "/elsewhere/second", "/folder"] {
      #expect(try manager.attributesOfItem(atPath: folder + link)[.type] as? FileAttributeType == .typeSymbolicLink)
    }
    #expect(try manager.contentsOfDirectory(atPath: folder + "/elsewhere").sorted() == ["file", "second"])
  }

  @Test func `a dangling link, a link to itself and a link to a folder are refused and stay`() throws {
    let fixture = Fixture()
    try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
    for destination in ["nothing", "no/where", "link", ".", "../" + fixture.directory, "/"] {
      let link = fixture.directory + "/link"
      symlink(destination, link)
      let error = #expect(throws: StoreError.self) { try save(copyOf: .bytes([1]), to: link) }
      #expect(error?.kind == .io)
      #expect(error?.message.contains(link) == true)
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == destination)
      #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory) == ["link"])
      unlink(link)
    }
  }

  #if os(Linux)
    /// The test names no existing file in /dev: if it failed, the file would be replaced.
    @Test func `the names of open files, processes and devices are refused as targets`() throws {
      let fixture = Fixture()
      try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
      let file = fixture.directory + "/file"
      try Data([1]).write(to: URL(filePath: file))
      let descriptor = open(file, O_RDWR)
      defer { close(descriptor) }
      let link = fixture.directory + "/link"
      symlink("/proc/self/fd/\(descriptor)", link)
      symlink("/dev/fd", fixture.directory + "/folder")
      defer { unlink("/dev/imageworker-test") }
      for path in [
        link, "/proc/self/fd/\(descriptor)", "/dev/fd/\(descriptor)", "\(fixture.directory)/folder/\(descriptor)",
        "/dev/imageworker-test", "/proc/imageworker-test",
      ] {
        let error = #expect(throws: StoreError.self) { try save(copyOf: .bytes([2]), to: path) }
        #expect(error?.kind == .io)
        #expect(error?.message.contains(path) == true)
      }
      #expect(try [UInt8](Data(contentsOf: URL(filePath: file))) == [1])
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/proc/self/fd/\(descriptor)")
      if access("/dev/shm", W_OK) == 0 {
        let place = "/dev/shm/imageworker-test-\(UInt64.random(in: .min ... .max))"
        defer { unlink(place) }
        try save(copyOf: .bytes([2]), to: place)
        #expect(access(place, R_OK) == 0, "shared memory is no device")
      }
    }
  #endif

  @Test(arguments: ["relative.jpg", "/", "/nowhere-at-all/x.jpg", "/tmp/", "/tmp", "/etc/hosts/x", "/tmp/a\0b"])
  func `the error for an invalid target names it`(target: String) {
    let error = #expect(throws: StoreError.self) { try save(copyOf: .bytes([1]), to: target) }
    #expect(error?.kind == .io)
    #expect(error?.message.contains(target) == true)
  }
}

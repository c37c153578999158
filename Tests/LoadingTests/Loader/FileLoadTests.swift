import Foundation
import HTTPCaching
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Loads of files of the host, of which variants alone are stored.
struct FileLoadTests {
  private final class Photo: Sendable {
    let path = NSTemporaryDirectory() + "/photo-" + UUID().uuidString
    let request: @Sendable (inout LoadRequest) -> Void

    init() throws {
      request = { [path] request in
        Ask.for(Ask.small())(&request)
        (request.source, request.key) = (.file(HostPlace(.path(path))), "file://\(path)")
      }
      try write(Scene.image, at: 1000)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ bytes: [UInt8], at time: TimeInterval) throws {
      try Data(bytes).write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: time)], ofItemAtPath: path)
    }
  }

  @Test func `a variant serves the version that it was made from`() async throws {
    let (scene, photo) = (try await Scene(), try Photo())
    let first = await scene.submit(photo.request)
    scene.decoder.answer()
    #expect(scene.witness.end(of: first) == "file")
    #expect(scene.witness.end(of: await scene.submit(photo.request)) == "memory")
    let later = try await Scene(on: scene.disk)
    #expect(later.witness.end(of: await later.submit(photo.request)) == "disk")
    // The same content is decoded once.
    try photo.write(Scene.image, at: 2000)
    #expect(scene.witness.end(of: await scene.submit(photo.request)) == "file")
    #expect(scene.witness.end(of: await scene.submit(photo.request)) == "memory")
    #expect(scene.decoder.orderCount == 1)
    try photo.write(Scene.otherImage, at: 3000)
    let changed = await scene.submit(photo.request)
    scene.decoder.answer()
    #expect(scene.witness.end(of: changed) == "file")
    try FileManager.default.removeItem(atPath: photo.path)
    #expect(scene.witness.end(of: await scene.submit(photo.request)) == "io")
    let stored = try scene.disk.onDisk { [tier = scene.disk.tier] in tier.assumeIsolated { $0.counts.entries } }
    #expect(stored == 1)
    #expect(await scene.isIdle)
  }

  @Test func `a deadline passes and a cancel acts while the file system does not answer`() async throws {
    let (scene, photo) = (try await Scene(), try Photo())
    let gate = scene.disk.closeGate()
    let overdue = await scene.submit {
      photo.request(&$0)
      $0.deadline = .zero
    }
    let cancelled = await scene.submit(photo.request)
    await { @LoadingActor in
      _ = scene.loader.advance()
      _ = scene.loader.cancel(cancelled)
    }()
    #expect(scene.witness.end(of: overdue) == "timeout")
    #expect(scene.witness.end(of: cancelled) == "cancelled")
    gate.open()
    try await scene.settle()
    #expect(scene.witness.ends.withLock { $0.values.allSatisfy { $0.count == 1 } })
    #expect(await scene.isIdle)
  }

  @Test func `a file that was written just now is not cached`() async throws {
    let (scene, photo) = (try await Scene(), try Photo())
    try photo.write(Scene.image, at: Date().timeIntervalSince1970 + 100)
    for _ in 1...2 {
      let id = await scene.submit(photo.request)
      scene.decoder.answer()
      let image = try scene.witness.image(of: id)
      #expect(image.cache == .file && !image.isKept)
    }
    let stored = try scene.disk.onDisk { [tier = scene.disk.tier] in tier.assumeIsolated { $0.counts.entries } }
    #expect(stored == 0)
  }

  @Test func `the mode and what is stored decide`() {
    for mode in CacheMode.allCases {
      let isRead = [.reload, .noStore].contains(mode)
      #expect(
        CacheDecision(ofFileIn: mode, isStored: true)
          == (isRead ? .fetch(headers: [:]) : .serve(index: 0, isFresh: true)))
      #expect(
        CacheDecision(ofFileIn: mode, isStored: false) == (mode == .onlyIfCached ? .notCached : .fetch(headers: [:])))
    }
  }
}

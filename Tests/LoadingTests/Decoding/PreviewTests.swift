import Foundation
import HTTPCaching
import HTTPTransport
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Previews of an arriving image.
struct PreviewTests {
  /// The received part of a progressive JPEG of 8 x 8 pixels: its frame header.
  private static let partialBody: [UInt8] =
    [0xFF, 0xD8, 0xFF, 0xC2, 0, 17, 8, 0, 8, 0, 8, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]
    + [0xFF, 0xDA, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 1]

  /// A load from a server that accepts connections and never answers. Its transfer has started.
  private func load(in scene: Scene) async throws -> (id: LoadID, job: JobID, silence: SilentServer) {
    let silence = try SilentServer()
    let url = try ResourceURL("http://127.0.0.1:\(silence.port)/a.jpg")
    let (id, job) = await { @LoadingActor in
      let id = scene.submit {
        $0.source = .http(url)
        $0.events = .preview
        $0.cacheMode = .noStore
        // A timeout longer than the test may have to wait for a thread.
        $0.timeout = .seconds(3600)
      }
      return (id, scene.loader.jobs.scheduler.job(of: id))
    }()
    try await scene.settle()
    _ = await scene.loader.advance()
    return (id, try #require(job), silence)
  }

  private func arriving(_ scans: Int) -> ArrivingImage {
    ArrivingImage(content: .bytes(Self.partialBody), scans: scans, end: Self.partialBody.count)
  }

  @Test func `a preview that waits for a decoder is cancelled with its transfer`() async throws {
    let scene = try await Scene()
    let (id, job, silence) = try await load(in: scene)
    defer { silence.close() }
    await scene.loader.previews.make(from: arriving(1), of: job)
    let order = scene.decoder.next()
    #expect(await scene.loader.decodes.memory.count == Self.partialBody.count)
    #expect(await scene.loader.cancel(id))
    scene.decoder.waitForCancel(of: order)
    order.then(.failure(.cancelled))
    try await scene.settle()
    #expect(await scene.loader.decodes.memory.count == 0)
    #expect(scene.witness.scans.withLock { $0.isEmpty })
  }

  @Test func `a transfer has at most one preview under way, and none while the memory budget is used up`() async throws
  {
    let scene = try await Scene()
    let (id, job, silence) = try await load(in: scene)
    defer { silence.close() }
    await { @LoadingActor in
      scene.loader.decodes.memory.limit = 10
      scene.loader.previews.make(from: arriving(1), of: job)
      scene.loader.decodes.memory.limit = 1000
      scene.loader.previews.make(from: arriving(2), of: job)
      scene.loader.previews.make(from: arriving(3), of: job)
    }()
    scene.decoder.answer()
    try await scene.settle()
    try await scene.settle()
    #expect(scene.witness.scans.withLock { $0[id] } == [2])
    await scene.loader.previews.make(from: arriving(4), of: job)
    scene.decoder.answer()
    try await scene.settle()
    try await scene.settle()
    #expect(scene.witness.scans.withLock { $0[id] } == [2, 4])
    #expect(await scene.loader.cancel(id))
  }
}

/// Accepts connections and sends nothing.
private struct SilentServer {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutableBytes(of: &address) { [descriptor] bytes in
      let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return bind(descriptor, pointer, length) == 0 && listen(descriptor, 8) == 0
        && getsockname(descriptor, pointer, &length) == 0
    }
    try #require(isListening)
    port = UInt16(bigEndian: address.sin_port)
  }

  func close() { Foundation.close(descriptor) }
}

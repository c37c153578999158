import HTTPCaching
import HTTPTypes
import Platform
import Testing
import Threads

@testable import HTTPTransport
@testable import ImageStore
@testable import Loading

/// Loads of one image with different headers: which of them share a transfer, and how its response affects each. No
/// transfer starts here; the test supplies the responses.
struct CoalescingTests {
  private final class Scene: Sendable {
    let disk: DiskFixture
    let loader: Loader
    let witness = Witness()

    /// - Parameter stored: the headers of the stored responses, in addition to those that make them stale.
    init(stored: HeaderFields..., partition: String = "") async throws {
      let disk = try DiskFixture()
      self.disk = disk
      loader = await { @LoadingActor in
        let transport = Transport(configuration: TransportConfiguration(userAgent: "test"))
        let loader = Loader(
          transport: transport, storage: disk.storage, decoder: ScriptedDecoder(), settings: LoaderSettings())
        loader.isPaused = true
        loader.jobs.scheduler.limits.maxLookUps = 0
        for (number, headers) in stored.enumerated() {
          let own: HeaderFields = ["cache-control": "max-age=0", "etag": "\"\(number)\""]
          let response = StoredResponse(
            key: "k", partition: partition, url: "u", headers: HeaderFields(headers.lines + own.lines),
            varyingHeaders: stored.count > 1 ? ["x-number": "\(number)"] : [:], requestTime: 1_699_999_000,
            responseTime: 1_699_999_000, storedAt: 1_699_999_000, validatedAt: 1_699_999_000, expiresAt: 1_699_999_000,
            content: ImageDescription(ImageHeader(.gif), byteCount: 1, digest: [UInt8(number)]))
          loader.cache.remember(response, [7])
        }
        return loader
      }()
    }

    @LoadingActor
    func submit(_ headers: HeaderFields = [:], _ priority: Priority = .normal, mode: CacheMode = .default) throws
      -> LoadID
    {
      var request = LoadRequest(
        url: "u", source: .http(try ResourceURL("http://a/")), key: "k",
        fields: LoadHeaders(HeaderFields([HeaderField("user-agent", "test")] + headers.lines), own: headers))
      request.priority = priority
      request.delivery = .data
      request.cacheMode = mode
      let id = loader.makeID()
      loader.submit(request, as: id, for: witness)
      return id
    }

    /// Waits until the loads so far have been looked up on disk.
    func look() async {
      let isLookedUp = Promise<Bool>()
      disk.executor.run { isLookedUp.fulfil(true) }
      _ = isLookedUp.value
      await { @LoadingActor in }()
    }

    /// The loads grouped by job, in the order of their first loads.
    @LoadingActor var groups: [[LoadID]] {
      loader.jobs.scheduler.allJobs.map { loader.jobs.scheduler.subscribers(of: $0) }.sorted { $0[0] < $1[0] }
    }

    /// Supplies a 304 for the job of a load.
    @LoadingActor func confirm(_ id: LoadID, _ headers: HeaderFields = [:]) throws {
      let job = try job(of: id)
      // No transfer starts in these tests: the 304 is for one that might have been.
      loader.coordinator.responses.confirm(
        job,
        TransferSummary(
          head: ResponseHead(status: 304, headers: headers, finalURL: "http://a/"), bytesReceived: 0,
          redirects: 0, times: TransferTimes(startedAt: .now, endedAt: .now), requestTime: 1_700_000_000,
          responseTime: 1_700_000_000))
    }

    @LoadingActor func fail(_ id: LoadID, _ error: LoadError) throws { loader.coordinator.fail(try job(of: id), error) }

    @LoadingActor private func job(of id: LoadID) throws -> JobID {
      let job = loader.jobs.scheduler.job(of: id)
      return try #require(job)
    }

    /// Cancels the remaining loads. Returns whether nothing is left.
    @LoadingActor func isSpotlessAtTheEnd() -> Bool {
      _ = loader.cancel(.all)
      return loader.registry.isEmpty && loader.jobs.isEmpty && loader.jobs.scheduler.jobs.byKey.isEmpty
    }
  }

  @LoadingActor private final class Witness: LoadObserver {
    nonisolated let ends = Locked<[LoadID: [String]]>([:])
    /// Called within the end of each load.
    var onEnd: (LoadID) -> Void = { _ in }
    nonisolated init() {}
    func load(_ id: LoadID, did event: LoadEvent) {}
    func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {
      let end =
        switch result {
        case .success(let image): image.cache.rawValue
        case .failure(let error): error.kind.rawValue
        }
      ends.withLock { $0[id, default: []].append(end) }
      onEnd(id)
    }
    nonisolated func ends(of ids: [LoadID]) -> [[String]] { ends.withLock { ends in ids.map { ends[$0] ?? [] } } }
  }

  @Test func `loads of different cache modes are separate`() async throws {
    let scene = try await Scene(stored: ["vary": "accept"])
    let ids = try await [
      scene.submit(mode: .reload), scene.submit(mode: .reload), scene.submit(["accept": "a"], mode: .reload),
      scene.submit(mode: .noCache), scene.submit(mode: .noCache), scene.submit(mode: .noStore),
      scene.submit(mode: .noStore),
    ]
    await scene.look()
    #expect(await scene.groups == [[ids[0], ids[1]], [ids[2]], [ids[3], ids[4]], [ids[5], ids[6]]])
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `a load that must not transfer gets no answer of a transfer that ends before its lookup`() async throws {
    let scene = try await Scene()
    let first = try await scene.submit()
    await scene.look()
    let gate = scene.disk.closeGate()
    let second = try await scene.submit(mode: .onlyIfCached)
    try await scene.fail(first, LoadError(.http, "the server answered 500"))
    #expect(scene.witness.ends(of: [first, second]) == [["http"], []])
    gate.open()
    await scene.look()
    #expect(scene.witness.ends(of: [second]) == [["notCached"]])
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `a response stored while loads wait serves them when their transfer is due`() async throws {
    let scene = try await Scene()
    let ids = try await [scene.submit(["x-n": "1"]), scene.submit(["x-n": "2"]), scene.submit(["x-n": "3"])]
    await scene.look()
    #expect(await scene.groups == [[ids[0]], [ids[1]], [ids[2]]])
    await { @LoadingActor in
      scene.loader.jobs.scheduler.limits.maxPerOrigin = 1
      let response = StoredResponse(
        key: "k", url: "u", headers: ["cache-control": "max-age=60"], requestTime: 1_700_000_000,
        responseTime: 1_700_000_000, storedAt: 1_700_000_000, validatedAt: 1_700_000_000, expiresAt: 1_700_000_060,
        content: ImageDescription(ImageHeader(.gif), byteCount: 1, digest: [1]))
      scene.loader.cache.remember(response, [7])
      scene.loader.isPaused = false
      _ = scene.loader.advance()
    }()
    await scene.look()
    #expect(scene.witness.ends(of: ids) == [["memory"], ["memory"], ["memory"]])
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `without a stored response all headers count except those without meaning for the image`() async throws {
    let scene = try await Scene()
    let ids = try await [
      scene.submit(["x-n": "1"]), scene.submit(["x-n": "2"]), scene.submit(["x-n": "1", "priority": "u=1"]),
      scene.submit(["traceparent": "00-1", "tracestate": "a=b"]), scene.submit(["traceparent": "00-2"]), scene.submit(),
    ]
    await scene.look()
    #expect(await scene.groups == [[ids[0], ids[2]], [ids[1]], [ids[3], ids[4], ids[5]]])
  }

  @Test(arguments: ["authorization", "cookie"])
  func `loads with different credentials are separate whatever Vary names`(name: String) async throws {
    var (alice, bob): (HeaderFields, HeaderFields) = ([:], [:])
    alice.append(name, "alice")
    bob.append(name, "bob")
    let scene = try await Scene(stored: [:])
    let ids = try await [scene.submit(alice), scene.submit(bob), scene.submit(), scene.submit(alice)]
    await scene.look()
    #expect(await scene.groups == [[ids[0], ids[3]], [ids[1]], [ids[2]]])
  }

  @Test func `a job detached by a clear is joined by no load`() async throws {
    let scene = try await Scene(stored: [:])
    let first = try await scene.submit()
    await scene.look()
    let cleared = Promise<Int>()
    await scene.loader.clear(.all, in: .disk) { cleared.fulfil((try? $0.get().removed) ?? -1) }
    let second = try await scene.submit()
    await scene.look()
    #expect(await scene.groups == [[first], [second]])
    #expect(cleared.value == 0)
  }

  @Test func `a 304 answers all loads of the job`() async throws {
    let scene = try await Scene(stored: [:])
    let ids = try await [scene.submit(["traceparent": "1"]), scene.submit(["traceparent": "2"])]
    await scene.look()
    try await scene.confirm(ids[0])
    #expect(scene.witness.ends(of: ids) == [["revalidated"], ["revalidated"]])
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `after a 304 with a new Vary, the loads that it does not match are sent again`() async throws {
    let scene = try await Scene(stored: [:])
    let ids = try await [
      scene.submit(["traceparent": "1"]), scene.submit(["traceparent": "2"]), scene.submit(["traceparent": "3"]),
    ]
    await scene.look()
    #expect(await scene.groups == [ids])
    for number in ids.indices {
      try await scene.confirm(ids[number], ["vary": "traceparent"])
      await scene.look()
      #expect(scene.witness.ends(of: ids) == ids.indices.map { $0 <= number ? ["revalidated"] : [] })
    }
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `a load that ends while another of its job is answered does not join again`() async throws {
    let scene = try await Scene(stored: [:])
    let ids = try await [scene.submit(["traceparent": "1"]), scene.submit(["traceparent": "2"])]
    await scene.look()
    await { @LoadingActor in
      scene.witness.onEnd = { id in if id == ids[0] { _ = scene.loader.cancel(ids[1]) } }
    }()
    try await scene.confirm(ids[0], ["vary": "traceparent"])
    await scene.look()
    #expect(scene.witness.ends(of: ids) == [["revalidated"], ["cancelled"]])
    #expect(await scene.groups.isEmpty)
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test(arguments: [("traceparent", [["revalidated"], []]), ("*", [["revalidated"], ["revalidated"]])])
  func `trace context headers distinguish loads only if Vary names them`(vary: String, ends: [[String]]) async throws {
    let scene = try await Scene(stored: [:])
    let ids = try await [scene.submit(["traceparent": "00-1"]), scene.submit(["traceparent": "00-2"])]
    await scene.look()
    #expect(await scene.groups == [ids])
    try await scene.confirm(ids[0], ["vary": vary])
    #expect(scene.witness.ends(of: ids) == ends)
    #expect(await scene.isSpotlessAtTheEnd())
  }

  @Test func `a failure of the origin ends all loads of the job`() async throws {
    let scene = try await Scene(stored: [:])
    let ids = try await [scene.submit(), scene.submit()]
    await scene.look()
    try await scene.fail(ids[0], LoadError(.connect, "refused"))
    #expect(scene.witness.ends(of: ids) == [["connect"], ["connect"]])
    #expect(await scene.isSpotlessAtTheEnd())
  }
}

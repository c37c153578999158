import ImageCodec
import Testing

@testable import ImageStore
@testable import Loading

/// Facts that a decoder computes about originals.
struct FactsTests {
  private static let all = FactSet(FactSet.named.map(\.fact))
  private static let expected: UInt64 = 0xABC

  @Test func `facts are computed once for an image in memory, and again for one on disk`() async throws {
    let scene = try await Scene()
    let ask = Ask.for(facts: Self.all)
    let id = await scene.submit(ask)
    #expect(scene.decoder.next(succeeding: .facts(Self.all)))
    #expect(try scene.witness.image(of: id).facts.perceptualHash == Self.expected)
    let again = try scene.witness.image(of: await scene.submit(ask))
    #expect(again.cache == .memory && again.facts.perceptualHash == Self.expected)
    #expect(try scene.witness.image(of: await scene.submit()).facts.perceptualHash == nil)
    #expect(scene.decoder.orderCount == 1)
    let later = try await Scene(on: scene.disk)
    let restarted = await later.submit(ask)
    #expect(later.decoder.next(succeeding: .facts(Self.all)))
    let found = try later.witness.image(of: restarted)
    #expect(found.cache == .disk && found.facts.perceptualHash == Self.expected)
    #expect(await scene.isIdle)
  }

  @Test func `fields of EXIF come from memory, and the position only to a load that asks for it`() async throws {
    let scene = try await Scene()
    let both = await scene.submit(Ask.for(facts: [.exif, .gps]))
    #expect(scene.decoder.next(succeeding: .facts([.exif, .gps])))
    let exif: [EXIFField: EXIFValue] = [.make: .text("Maker"), .iso: .number(400)]
    #expect(try scene.witness.image(of: both).facts.exif == exif)
    #expect(try scene.witness.image(of: both).facts.gps.map { Set($0.keys) } == [.latitude, .longitude])
    let one = try scene.witness.image(of: await scene.submit(Ask.for(facts: .exif)))
    #expect(one.cache == .memory && one.facts == ImageFacts(exif: exif))
    let hash = await scene.submit(Ask.for(facts: Self.all))
    #expect(scene.decoder.next(succeeding: .facts([.perceptualHash, .container])))
    #expect(try scene.witness.image(of: hash).facts.exif == exif)
    #expect(scene.decoder.orderCount == 2)
  }

  @Test func `a variant has the facts of its original, also when it is cached`() async throws {
    let scene = try await Scene()
    let ask = Ask.for(Ask.small(), facts: Self.all)
    let id = await scene.submit(ask)
    #expect(scene.decoder.next(succeeding: .facts(Self.all)))
    scene.decoder.answer()
    let made = try scene.witness.image(of: id)
    #expect(made.source != nil && made.facts.perceptualHash == Self.expected)
    let again = try scene.witness.image(of: await scene.submit(ask))
    #expect(again.cache == .memory && again.source != nil && again.facts.perceptualHash == Self.expected)
    #expect(scene.decoder.orderCount == 2)
    // The variant on disk is delivered, with the facts computed from the original.
    let later = try await Scene(on: scene.disk)
    let restarted = await later.submit(ask)
    #expect(later.decoder.next(succeeding: .facts(Self.all)))
    let found = try later.witness.image(of: restarted)
    #expect(found.path == made.path && found.cache == .disk && found.facts.perceptualHash == Self.expected)
    #expect(later.decoder.orderCount == 1)
  }

  @Test func `a variant that was made before gets the facts`() async throws {
    let scene = try await Scene()
    let plain = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(try scene.witness.image(of: plain).facts.perceptualHash == nil)
    let ask = Ask.for(Ask.small(), facts: Self.all)
    let id = await scene.submit(ask)
    #expect(scene.decoder.next(succeeding: .facts(Self.all)))
    let image = try scene.witness.image(of: id)
    #expect(image.source != nil && image.facts.perceptualHash == Self.expected)
    #expect(try scene.witness.image(of: await scene.submit(ask)).cache == .memory)
    #expect(scene.decoder.orderCount == 2)
  }

  @Test func `a load that needs facts does not join a decode without them`() async throws {
    let scene = try await Scene()
    let plain = await scene.submit(Ask.for(Ask.small()))
    let encode = scene.decoder.next()
    let withFacts = await scene.submit(Ask.for(Ask.small(), facts: Self.all))
    #expect(scene.decoder.next(succeeding: .facts(Self.all)))
    scene.decoder.answer()
    #expect(try scene.witness.image(of: withFacts).facts.perceptualHash == Self.expected)
    encode.then(ScriptedDecoder.succeed(encode.task))
    #expect(try scene.witness.image(of: plain).facts.perceptualHash == nil)
    #expect(await scene.isIdle)
  }

  @Test func `pixels come with the facts`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(pixels: true, facts: Self.all))
    #expect(scene.decoder.next(succeeding: .facts(Self.all)))
    scene.decoder.answer()
    let image = try scene.witness.image(of: id)
    #expect(image.pixels != nil && image.facts.perceptualHash == Self.expected)
  }

  @Test func `an image without the facts that were asked for is a failure`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(facts: Self.all))
    scene.decoder.answer { _ in .failure(.tooManyPixels("a side is too long")) }
    #expect(scene.witness.end(of: id) == "tooManyPixels")
  }
}

extension ScriptedDecoder {
  /// Answers the next task. Returns whether it has this output.
  fileprivate func next(succeeding output: DecodeTask.Output) -> Bool {
    let order = next()
    order.then(Self.succeed(order.task))
    return order.task.output == output
  }
}

import ImageCodec
import Testing

/// TIFFs whose samples have more than 16 bits.
@Suite struct `Deep TIFFs` {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  @Test func `integer samples go from black to white over their range`() async throws {
    let picture = Pictures(width: 3, height: 1, samples: 1, depth: 32) { x, _ in [[0, 0x8080_8080, 0xFFFF_FFFF][x]] }
    let pixels = try await decoding.pixels(picture.tiff())
    #expect((0..<3).map { pixels[$0, 0] } == [[0], [128], [255]])
  }

  @Test func `floating-point samples range from 0 to 1 and are clamped`() async throws {
    let values: [Float] = [-2, 0, 0.5, 1, 9]
    let picture = Pictures(width: 5, height: 1, samples: 1, depth: 32) { x, _ in [Int(values[x].bitPattern)] }
    let pixels = try await decoding.pixels(picture.tiff(sampleFormat: 3))
    #expect((0..<5).map { pixels[$0, 0] } == [[0], [0], [128], [255], [255]])
  }
}

import Foundation
import ImageCodec
import Testing

/// Pictures with high dynamic range, in the colours that Chromium 156 shows on a screen with standard dynamic range.
struct ToneMapTests {
  private let decoding = try! Decoding.shared()

  /// The PQ signal (ITU-R BT.2100-2, table 4) of a luminance in cd/m2.
  private static func pq(_ luminance: Double) -> Double {
    let power = pow(luminance / 10_000, 2610.0 / 16384)
    return pow((3424.0 / 4096 + 2413.0 / 128 * power) / (1 + 2392.0 / 128 * power), 2523.0 / 32)
  }

  private static func codePoints(_ numbers: UInt8...) -> [UInt8] { Pictures.chunk("cICP", numbers) }

  /// A picture of one colour, each sample of which is a signal from 0 to 1.
  private func shown(_ signals: [Double], depth: Int = 16, _ chunk: [UInt8]) async throws -> (ImageNotes, [Int]) {
    let most = Double(1 << depth - 1)
    let picture = Pictures(width: 40, height: 30, samples: signals.count, depth: depth) { _, _ in
      signals.map { Int(($0 * most).rounded()) }
    }
    let file = picture.png(extraChunks: chunk)
    let notes = try await decoding.run(try decoding.task(file, .pixels(decoding.newPath()))).get().notes
    let whole = try await decoding.pixels(file)
    let small = try await decoding.pixels(file, .with { $0.width = 10 })
    #expect(isNear(small[4, 4], whole[20, 20], within: 1))
    return (notes, whole[20, 20])
  }

  @Test(arguments: [(0, 0), (10, 42), (100, 137), (203, 188), (333, 215), (588, 238), (1000, 255), (4000, 255)])
  func `a luminance in PQ has the lightness that Chromium gives it`(luminance: Double, expected: Int) async throws {
    for depth in [8, 16] {
      let signal = Self.pq(luminance)
      let (notes, color) = try await shown([signal, signal, signal], depth: depth, Self.codePoints(9, 16, 0, 1))
      #expect(notes == .pq && isNear(color, [expected, expected, expected], within: depth == 8 ? 4 : 1), "\(color)")
      let (_, grey) = try await shown([signal], depth: depth, Self.codePoints(1, 16, 0, 1))
      #expect(isNear(grey, [expected], within: depth == 8 ? 4 : 1))
    }
  }

  @Test(arguments: [(0, 0), (0.25, 42), (0.5, 99), (0.75, 188), (0.9, 233), (1, 255)])
  func `a signal in HLG has the lightness that Chromium gives it`(signal: Double, expected: Int) async throws {
    let (notes, color) = try await shown([signal, signal, signal], Self.codePoints(9, 18, 0, 1))
    #expect(notes == .hlg && isNear(color, [expected, expected, expected], within: 1), "\(color)")
  }

  @Test func `colours are converted from their primaries, and alpha is kept`() async throws {
    let white = Self.pq(203)
    let (_, red) = try await shown([white, 0, 0, 0.5], Self.codePoints(1, 16, 0, 1))
    #expect(isNear(red, [188, 0, 0, 128], within: 1))
    let (_, p3) = try await shown([white, 0, 0], Self.codePoints(12, 16, 0, 1))
    #expect(isNear(p3, [206, 0, 0], within: 2), "\(p3)")
    let (_, wide) = try await shown([white, 0, 0], Self.codePoints(9, 16, 0, 1))
    #expect(isNear(wide, [235, 0, 0], within: 2), "\(wide)")
  }

  @Test(arguments: [(16, ImageNotes.pq), (18, .hlg)])
  func `an AVIF is mapped as a PNG is`(transfer: Int, note: ImageNotes) async throws {
    var avif = AVIFBuilder(frames: [(0, { _, _ in [150, 100, 75, 255] })])
    (avif.depth, avif.primaries, avif.transfer) = (10, 9, transfer)
    let file = try avif.file()
    let signals = [150, 100, 75].map { $0 / 255.0 }
    let (_, expected) = try await shown(signals, Self.codePoints(9, UInt8(transfer), 0, 1))
    #expect(isNear(try await decoding.pixels(file)[20, 20].prefix(3).map { $0 }, expected, within: 3))
    let (decoded, _) = try await decoding.encoded(file, .with { ($0.width, $0.format) = (20, .jpeg) })
    #expect(decoded.notes == note)
  }

  @Test func `a gain map is noted, and the base image shown`() async throws {
    let plain = try await decoding.encoded(Pictures.waves(40, 30).png(), as: .jpeg)
    let xmp = Build.text("http://ns.adobe.com/xap/1.0/\0<rdf:Description hdrgm:Version=\"1.0\"/>")
    let segments = [Build.segment(0xE1, xmp), Build.segment(0xE2, Build.text("urn:iso:std:iso:ts:21496:-1\0\0\0\0\0"))]
    for segment in segments {
      let file = Array(plain[..<2]) + segment + plain[2...]
      #expect(try await decoding.pixels(file) == (try await decoding.pixels(plain)))
      for format in [ImageFormat.jpeg, .webp] {
        #expect(try await decoding.encoded(file, .with { ($0.width, $0.format) = (10, format) }).0.notes == .gainMap)
      }
    }
    let other = Build.segment(0xE1, Build.text("http://ns.adobe.com/xap/1.0/\0<x/>"))
    #expect(try await decoding.encoded(Array(plain[..<2]) + other + plain[2...]).0.notes == [])
  }
}

import Testing

@testable import ImageCodec

@Suite struct `Headers of images that are still arriving` {
  /// The lengths of prefixes to try: all short ones, and some of the others.
  private static func lengths(_ count: Int) -> [Int] {
    let step = max(1, count / 300)
    return Array(Set(0...min(count, 600)).union(stride(from: 0, through: count, by: step)).union([count])).sorted()
  }

  @Test(arguments: Sample.all)
  func `a prefix gives the header of the whole file, or the number of bytes that are missing`(_ sample: Sample) throws {
    let whole = try ImageHeader.read(sample.bytes, format: sample.format)
    for count in Self.lengths(sample.bytes.count) {
      let prefix = Array(sample.bytes.prefix(count))
      for length in [sample.bytes.count, nil] {
        switch HeaderPrefix.read(prefix, ofLength: length, format: sample.format) {
        case .complete(let header): #expect(header == whole, "\(count) bytes")
        case .needsMore(let needed): #expect(needed > count)
        case .invalid(let error): Issue.record("\(count) bytes: \(error)")
        }
      }
    }
    #expect(HeaderPrefix.read(sample.bytes, ofLength: sample.bytes.count, format: sample.format) == .complete(whole))
  }

  @Test(arguments: `Image headers`.impossible)
  func `an impossible header is not taken for one that is still arriving`(format: ImageFormat, bytes: [UInt8]) {
    let result = HeaderPrefix.read(bytes, ofLength: bytes.count, format: format)
    guard case .invalid = result else { return #expect(Bool(false), "\(result)") }
  }

  @Test func `the first bytes of a large image suffice`() {
    let pixels = [UInt8](repeating: 0, count: 1 << 20)
    let files: [(ImageFormat, [UInt8])] = [
      (.jpeg, Build.jpeg(640, 480, before: Build.jpegEXIF(6)) + pixels),
      (.png, Build.png(640, 480) + Build.chunk("IDAT", pixels)),
      (.webp, Build.webpLossy(640, 480) + pixels),
      (
        .avif,
        Build.heif(Build.ftyp("avif", "mif1", "miaf"), properties: [Build.ispe(640, 480)]) + Build.box("mdat", pixels)
      ),
    ]
    for (format, bytes) in files {
      let result = HeaderPrefix.read(Array(bytes.prefix(4096)), ofLength: bytes.count, format: format)
      guard case .complete(let header) = result else {
        Issue.record("\(format): \(result)")
        continue
      }
      #expect(header.width == 640 && header.height == 480, "\(format)")
    }
  }
}

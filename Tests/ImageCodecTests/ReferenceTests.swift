import Foundation
import ImageCodec
import Testing

private let vips = ["/usr/bin/vips", "/usr/local/bin/vips", "/opt/homebrew/bin/vips"].first {
  FileManager.default.isExecutableFile(atPath: $0)
}

/// Thumbnails beside those of libvips' own tool: skipped where that is not installed.
@Suite(.enabled(if: vips != nil, "there is no vips command"))
struct ReferenceTests {
  @Test(arguments: [ImageFormat.jpeg, .png, .webp], [64, 160, 256, 700])
  func `a thumbnail is close to that of libvips`(format: ImageFormat, size: Int) async throws {
    let decoding = try Decoding()
    let file = try await decoding.encoded(Pictures.hills(1000, 750).png(), as: format, quality: 90)
    let input = decoding.newPath()
    try Data(file).write(to: URL(filePath: input))
    let output = decoding.newPath() + ".png"
    let process = Process()
    process.executableURL = URL(filePath: try #require(vips))
    process.arguments = ["thumbnail", input, output, "\(size)"]
    try process.run()
    process.waitUntilExit()
    let expected = try await decoding.pixels([UInt8](try Data(contentsOf: URL(filePath: output))))
    let pixels = try await decoding.pixels(file, .with { $0.width = size })
    #expect((pixels.width, pixels.height) == (expected.width, expected.height))
    let difference = pixels.meanDifference(from: expected)
    print("\(format) \(size): \(difference)")
    #expect(difference < 1)
  }
}

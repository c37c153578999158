import Foundation
import ImageCodec
import Testing

private let vips = ["/usr/bin/vips", "/usr/local/bin/vips", "/opt/homebrew/bin/vips"].first {
  FileManager.default.isExecutableFile(atPath: $0)
}

/// Thumbnails beside those of libvips' own tool: skipped where that is not installed.
@Suite(.enabled(if: vips != nil, "there is no vips command"))
struct ReferenceTests {
  private static let picture = Pictures.hills(512, 384).png()

  @Test(arguments: [ImageFormat.jpeg, .png, .webp], [32, 80, 128, 352])
  func `a thumbnail is close to that of libvips`(format: ImageFormat, size: Int) async throws {
    let decoding = try Decoding()
    let file = try await decoding.encoded(Self.picture, as: format, quality: 90)
    let input = decoding.newPath()
    // The tool has libwebp's plainer filter do all that it can; its own is the reference.
    let original = format == .webp ? try await decoding.encoded(file, as: .png) : file
    try Data(original).write(to: URL(filePath: input))
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
    #expect(difference < 1)
  }
}

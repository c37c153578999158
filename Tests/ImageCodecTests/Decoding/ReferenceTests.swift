import Foundation
import ImageCodec
import Testing

private let vips = ["/usr/bin/vips", "/usr/local/bin/vips", "/opt/homebrew/bin/vips"].first {
  FileManager.default.isExecutableFile(atPath: $0)
}

/// Thumbnails compared with those of libvips' own tool; skipped if that is not installed.
@Suite(.enabled(if: vips != nil, "the vips command must be installed"))
struct ReferenceTests {
  private static let picture = Pictures.hills(512, 384).png()

  @Test(arguments: [ImageFormat.jpeg, .png, .webp], [32, 80, 128, 352])
  func `a thumbnail is close to that of libvips`(format: ImageFormat, size: Int) async throws {
    let decoding = try Decoding.shared()
    let file = try await decoding.encoded(Self.picture, as: format, quality: 90)
    let input = decoding.newPath()
    // The tool lets libwebp's simpler filter do as much as possible, so its own filter is the reference.
    let original = format == .webp ? try await decoding.encoded(file, as: .png) : file
    try Data(original).write(to: URL(filePath: input))
    let output = decoding.newPath() + ".png"
    try run(["thumbnail", input, output, "\(size)"])
    let expected = try await decoding.pixels([UInt8](try Data(contentsOf: URL(filePath: output))))
    let pixels = try await decoding.pixels(file, .with { $0.width = size })
    #expect((pixels.width, pixels.height) == (expected.width, expected.height))
    let difference = pixels.meanDifference(from: expected)
    #expect(difference < 1)
  }

  @Test(arguments: [3, 4], [nil, 40]) func `a colour profile is applied`(samples: Int, size: Int?) async throws {
    let decoding = try Decoding.shared()
    let picture = Pictures(width: 80, height: 60, samples: samples) { x, y in
      Array([x * 3, y * 4, 255 - x * 3, 255].prefix(samples))
    }
    let (plain, wide) = (decoding.newPath() + ".png", decoding.newPath() + ".png")
    try Data(picture.png()).write(to: URL(filePath: plain))
    try run(["icc_transform", plain, wide, "p3", "--input-profile", "srgb"])
    let file = [UInt8](try Data(contentsOf: URL(filePath: wide)))
    let transform = Transform.with { $0.width = size }
    let expected = try await decoding.pixels(picture.png(), transform)
    let pixels = try await decoding.pixels(file, transform)
    #expect(pixels.channels == samples)
    #expect(pixels.meanDifference(from: expected) < 1.5)
  }

  /// As in photographs: the profile is applied to pixels from libjpeg, and CMYK is decoded by libvips.
  @Test(arguments: ["p3", "cmyk"], [nil, 40]) func `the profile of a JPEG is applied`(profile: String, size: Int?)
    async throws
  {
    let decoding = try Decoding.shared()
    let picture = Pictures(width: 80, height: 60, samples: 3) { x, y in [60 + x, 80 + y, 160 - x] }
    let (plain, wide) = (decoding.newPath() + ".png", decoding.newPath() + ".jpg")
    try Data(picture.png()).write(to: URL(filePath: plain))
    try run(["icc_transform", plain, wide + "[Q=98]", profile, "--input-profile", "srgb"])
    let transform = Transform.with { $0.width = size }
    let expected = try await decoding.pixels(picture.png(), transform)
    let pixels = try await decoding.pixels([UInt8](try Data(contentsOf: URL(filePath: wide))), transform)
    #expect(pixels.meanDifference(from: expected) < (profile == "cmyk" ? 4 : 1.5))
  }

  private func run(_ arguments: [String]) throws {
    let process = try Process.run(URL(filePath: try #require(vips)), arguments: arguments)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}

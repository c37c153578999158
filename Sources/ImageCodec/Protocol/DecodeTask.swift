/// One image to decode, and what to make of it.
public struct DecodeTask: Sendable {
  public enum Source: Sendable {
    /// Opened when its turn comes. It must not change meanwhile.
    case file(String)
    case bytes([UInt8])
  }

  /// Paths are of new files: mode 0600, and there only if the decode succeeded.
  public enum Output: Sendable, Hashable {
    case encoded(String)
    /// Rows of 8-bit sRGB without padding: grey, R G B or R G B A with straight alpha.
    case pixels(String)
    /// Every pixel of every frame that can be read decodes; nothing is written.
    case check
    /// Only the placeholder.
    case placeholder
    /// What is there of an image that is still arriving, in JPEG, or PNG with alpha. `maxSide` limits its longer side.
    case preview(String, maxSide: Int)
  }

  public var source: Source
  /// What `ImageHeader.read` told: limits are checked with it before a decoder is asked.
  public var header: ImageHeader
  public var transform: Transform
  public var output: Output
  public var wantsPlaceholder: Bool
  /// Largest width x height x frames that is decoded or written.
  public var maxPixels: Int

  public init(
    source: Source, header: ImageHeader, transform: Transform = Transform(), output: Output,
    wantsPlaceholder: Bool = false, maxPixels: Int
  ) {
    (self.source, self.header, self.transform, self.output) = (source, header, transform, output)
    (self.wantsPlaceholder, self.maxPixels) = (wantsPlaceholder, maxPixels)
  }

  /// As many pixels as are decoded, as far as the header tells. Never overflows.
  var pixels: Int {
    guard let width = header.width, let height = header.height else { return 0 }
    let area = width.multipliedReportingOverflow(by: height)
    let all = area.partialValue.multipliedReportingOverflow(by: countedFrames)
    return area.overflow || all.overflow ? .max : all.partialValue
  }

  /// As many frames as are decoded.
  var countedFrames: Int {
    guard header.format.isReadFrameByFrame else { return 1 }
    return output == .check || transform.frames == .all ? max(1, header.frames) : 1
  }

  /// Where the result goes, if it is a file.
  var outputPath: String? {
    switch output {
    case .encoded(let path), .pixels(let path), .preview(let path, _): path
    case .check, .placeholder: nil
    }
  }
}

extension DecodeTask {
  /// Why no decoder need be asked.
  func refusal(formats: CodecFormats?) -> DecodeError? {
    let isNeverRead = header.width == nil || header.format == .jp2
    if isNeverRead || formats.map({ !$0.decode.contains(header.format) }) ?? false {
      return .unsupportedFormat("the decoder does not read \(header.format.rawValue)")
    }
    if pixels > maxPixels {
      let frames = countedFrames > 1 ? " x \(countedFrames)" : ""
      return .tooManyPixels("\(header.width ?? 0) x \(header.height ?? 0)\(frames) is more than \(maxPixels) pixels")
    }
    return nil
  }
}

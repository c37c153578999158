/// An image to decode and the output to produce.
public struct DecodeTask: Sendable {
  public enum Source: Sendable {
    /// A path, opened when the task starts. The file must not change before the task ends.
    case file(String)
    case bytes([UInt8])
  }

  /// The output to produce. A path must be of a new file. It is created with mode 0600 and stays only if the decode
  /// succeeds.
  public enum Output: Sendable, Hashable {
    case encoded(String)
    /// Rows of 8-bit sRGB without padding: grey, R G B or R G B A with straight alpha.
    case pixels(String)
    /// Nothing is written; the task succeeds if every pixel of every frame can be decoded.
    case check
    /// Only the placeholder.
    case placeholder
    /// Only these facts.
    case facts(FactSet)
    /// The decodable part of a partial image, as JPEG, or as PNG if it has alpha. `maxSide` limits the longer side.
    case preview(String, maxSide: Int)
    /// Several files, one after the other in the order of the set; nothing is written for an empty set. The transform
    /// of the task has no effect.
    case renditions(RenditionSet, String)
  }

  /// The other images that the process of a decode may decode before and after.
  public enum Isolation: Sendable, Hashable {
    /// None.
    case image
    /// Those of tasks with the same name.
    case tenant(String)
    /// Those of all tasks that have no isolation.
    case none
  }

  public var source: Source
  /// The result of `ImageHeader.read`; limits are checked against it before a decoder is used.
  public var header: ImageHeader
  public var transform: Transform
  public var output: Output
  public var wantsPlaceholder: Bool
  /// The maximum of width x height x frames that is decoded or written.
  public var maxPixels: Int
  /// Nil for the pool's default.
  public var isolation: Isolation?

  public init(
    source: Source, header: ImageHeader, transform: Transform = Transform(), output: Output,
    wantsPlaceholder: Bool = false, maxPixels: Int, isolation: Isolation? = nil
  ) {
    (self.source, self.header, self.transform, self.output) = (source, header, transform, output)
    (self.wantsPlaceholder, self.maxPixels, self.isolation) = (wantsPlaceholder, maxPixels, isolation)
  }

  /// The number of pixels to decode, as far as the header says. Never overflows.
  var pixels: Int {
    guard let width = header.width, let height = header.height else { return 0 }
    let area = width.multipliedReportingOverflow(by: height)
    let all = area.partialValue.multipliedReportingOverflow(by: countedFrames)
    return area.overflow || all.overflow ? .max : all.partialValue
  }

  /// The number of frames to decode.
  var countedFrames: Int {
    guard header.format.isReadFrameByFrame else { return 1 }
    let countsAll =
      switch output {
      case .check: true
      case .renditions(let set, _): set.checks || set.renditions.contains { $0.transform.frames == .all }
      default: transform.frames == .all
      }
    return countsAll ? max(1, header.frames) : 1
  }

  /// The path of the output, if the output is a file.
  var outputPath: String? {
    switch output {
    case .encoded(let path), .pixels(let path), .preview(let path, _): path
    case .renditions(let set, let path): set.renditions.isEmpty ? nil : path
    case .check, .placeholder, .facts: nil
    }
  }
}

extension DecodeTask {
  /// The error of a task that can be refused without a decoder; nil for other tasks.
  func refusal(formats: CodecFormats?) -> DecodeError? {
    let isNeverRead = header.width == nil || header.format == .jp2
    if isNeverRead || formats.map({ !$0.decode.contains(header.format) }) ?? false {
      return .unsupportedFormat("the decoder does not read \(header.format.rawValue)")
    }
    if pixels > maxPixels, let (width, height) = header.upright {
      return .overLimit(maxPixels, width: width, height: height, frames: countedFrames)
    }
    return nil
  }
}

/// The result of a decode.
public struct Decoded: Sendable, Hashable {
  /// The size of the file that was written; 0 without one. That of all together if there are several.
  public var bytes = 0
  /// The format of the file that was written; nil for pixels, and without a file.
  public var format: ImageFormat?
  public var width = 0
  public var height = 0
  public var frames = 1
  /// The channels of pixels: 1, 3 or 4. A row has `width * channels` bytes.
  public var channels = 0
  /// The width of the source, after orientation unless the transform turns that off.
  public var sourceWidth = 0
  public var sourceHeight = 0
  public var placeholder: Placeholder?
  public var facts = ImageFacts()
  /// Notes on the decoded part of the source.
  public var notes: ImageNotes = []

  /// The files of a set.
  public var renditions: [File] = []

  /// A file of a set.
  public struct File: Sendable, Hashable {
    public var bytes: Int
    public var format: ImageFormat
    public var width: Int
    public var height: Int
    public var frames: Int
    /// The quality that a limit of bytes led to; nil without a limit, and for formats without a quality.
    public var quality: Int?

    package init(bytes: Int, format: ImageFormat, width: Int, height: Int, frames: Int, quality: Int?) {
      (self.bytes, self.format, self.width, self.height) = (bytes, format, width, height)
      (self.frames, self.quality) = (frames, quality)
    }
  }

  public init() {}
}

/// The formats that a decoder can read and write.
public struct CodecFormats: Sendable, Hashable {
  public var decode: [ImageFormat] = []
  public var encode: [ImageFormat] = []
  /// The image libraries: a name and a version, with a space between.
  public var libraries: [String] = []

  public init(decode: [ImageFormat] = [], encode: [ImageFormat] = [], libraries: [String] = []) {
    (self.decode, self.encode, self.libraries) = (decode, encode, libraries)
  }
}

/// The reason that an image was not decoded. The texts may be shown in an error message.
public enum DecodeError: Error, Sendable, Hashable {
  case corrupt(String)
  case unsupportedFormat(String, ErrorFigures = ErrorFigures())
  case tooManyPixels(String, ErrorFigures = ErrorFigures())
  /// The image needs more memory than a decoder process may have, even in a fresh process.
  case outOfMemory(String)
  /// The transform's crop is wholly outside the image.
  case cropOutside(String)
  /// A file of a set has more bytes than it may have, at the lowest quality.
  case tooLarge(String, ErrorFigures = ErrorFigures())
  /// The error of a file of a set.
  indirect case ofRendition(Int, DecodeError)
  /// The decoder process ended during the decode, and so did the process of the second attempt.
  case crashed
  /// The system killed the process twice, as it does when it has no memory left.
  case killed
  case timedOut(DecodeTimeout)
  case cancelled
  /// A file could not be read or written.
  case io(String)
  /// There is no space for the decoded image.
  case diskFull(String)
  /// No decoder process can be started.
  case unavailable(String)
}

/// Facts about a refused image, from which a program can write a sentence of its own.
public struct ErrorFigures: Sendable, Hashable {
  /// The upright size of the image or, if a limit applies to the result of the transform, of the result.
  public var width: Int?
  public var height: Int?
  /// The number of frames, if more than one counts.
  public var frames: Int?
  /// The size of the content, if it is known.
  public var bytes: Int64?
  /// The limit that was exceeded: in pixels or bytes, or that of the property `wanted`.
  public var limit: Double?
  /// The maximum length of a side in pixels, if a side is too long.
  public var maxSide: Int?
  /// The property of `want` that the image does not have.
  public var wanted: String?
  /// The format that is not wanted.
  public var format: ImageFormat?
  /// The content, if it is recognisably something else than an image that can be decoded.
  public var detected: ForeignContent?

  public init() {}

  public init(width: Int?, height: Int?, frames: Int? = nil, limit: Int? = nil, maxSide: Int? = nil) {
    (self.width, self.height, self.maxSide) = (width, height, maxSide)
    self.frames = frames.flatMap { $0 > 1 ? $0 : nil }
    self.limit = limit.map { Double($0) }
  }

  public init(bytes: Int64? = nil, limit: Int64) { (self.bytes, self.limit) = (bytes, Double(limit)) }
}

extension ErrorFigures {
  /// The figures that a decoder can report, by their names in its reply.
  private static let numbers: [(String, any WritableKeyPath<ErrorFigures, Int?> & Sendable)] = [
    ("width", \.width), ("height", \.height), ("frames", \.frames), ("maxSide", \.maxSide),
  ]

  func add(to message: inout CodecMessage) {
    for (name, path) in Self.numbers { message[number: name] = self[keyPath: path] }
    message[number: "bytes"] = bytes.map { Int($0) }
    message[number: "limit"] = limit.flatMap { Int(exactly: $0) }
    message["detected"] = detected?.rawValue
  }

  init(_ message: CodecMessage) {
    for (name, path) in Self.numbers { self[keyPath: path] = message[number: name] }
    bytes = message[number: "bytes"].map { Int64($0) }
    limit = message[number: "limit"].map { Double($0) }
    detected = message["detected"].flatMap(ForeignContent.init)
  }
}

extension DecodeError {
  /// The error for a picture of more than `limit` pixels.
  package static func overLimit(_ limit: Int, width: Int, height: Int, frames: Int = 1) -> DecodeError {
    let all = frames > 1 ? " x \(frames)" : ""
    return .tooManyPixels(
      "\(width) x \(height)\(all) is more than \(limit) pixels",
      ErrorFigures(width: width, height: height, frames: frames, limit: limit))
  }

  /// - Parameter picture: the subject of the message.
  package static func tooLong(sideOf picture: String, _ maxSide: Int, width: Int, height: Int) -> DecodeError {
    .tooManyPixels(
      "a side of \(picture) is longer than \(maxSide) pixels",
      ErrorFigures(width: width, height: height, maxSide: maxSide))
  }
}

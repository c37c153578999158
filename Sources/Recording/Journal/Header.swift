public import LineRPC

/// The first line of a journal.
public struct Header: Sendable {
  /// The version of the format.
  public static let format: Int64 = 1

  /// The version of the worker.
  public var version: String
  /// The seed of all random numbers.
  public var seed: UInt64
  /// The values of all options, by their names in `configure`.
  public var options: JSONObject
  /// The processors and the file descriptors of the process, which some limits depend on.
  public var processors: Int
  public var descriptors: Int
  /// Whether query strings were replaced.
  public var redactsQueries: Bool

  public init(
    version: String, seed: UInt64, options: JSONObject, processors: Int, descriptors: Int, redactsQueries: Bool
  ) {
    (self.version, self.seed, self.options) = (version, seed, options)
    (self.processors, self.descriptors, self.redactsQueries) = (processors, descriptors, redactsQueries)
  }

  var json: JSON {
    .object([
      "recording": .integer(Self.format), "version": .string(version),
      "seed": .string(String(seed, radix: 16)), "processors": .integer(Int64(processors)),
      "descriptors": .integer(Int64(descriptors)), "redactsQueries": .bool(redactsQueries),
      "options": .object(options),
    ])
  }

  init(_ line: Members) throws(RecordingError) {
    guard line.has("recording") else { throw RecordingError("must begin with the member recording") }
    let format = try line.integer("recording")
    guard format == Self.format else {
      throw RecordingError("the format \(format) is not supported; this worker reads format \(Self.format)")
    }
    guard let seed = UInt64(try line.text("seed"), radix: 16) else {
      throw RecordingError("seed must be a hexadecimal number")
    }
    guard case .object(let options) = try line.value("options") else {
      throw RecordingError("options must be an object")
    }
    self.init(
      version: try line.text("version"), seed: seed, options: options,
      processors: Int(try line.integer("processors")), descriptors: Int(try line.integer("descriptors")),
      redactsQueries: try line.flag("redactsQueries"))
  }
}

import Foundation
import Testing
import Threads

/// A process of the built worker. Sends and receives lines, and checks the guarantees about them.
final class WorkerProcess: Sendable {
  /// The folder of this worker. The cache is in its subfolder `cache` unless an option changes that.
  let directory: TemporaryDirectory
  let child: ChildProcess

  private let longLines: Bool
  private let nextID = Locked(0)
  private let transcript = Transcript()

  /// - Parameters:
  ///   - options: can contain another `--cache-dir`.
  ///   - longLines: whether lines may be longer than 60 kB, for tests of inline data or batches.
  init(
    _ options: [String] = [], directory: TemporaryDirectory? = nil, environment: [String: String] = [:],
    longLines: Bool = false, reads: Bool = true
  ) throws {
    self.directory = try directory ?? TemporaryDirectory()
    self.longLines = longLines
    let cache = options.contains("--cache-dir") ? [] : ["--cache-dir", self.directory.appending("cache")]
    // Held transfers and decodes must not time out on a busy machine. If an option is repeated, the last value counts.
    let patient = ["--timeout", "1h", "--decode-timeout", "1h"]
    let home = ["HOME": self.directory.path]
    child = try ChildProcess(
      try Self.binary(), patient + cache + options,
      environment: plainEnvironment.merging(home) { $1 }.merging(environment) { $1 }, reads: reads)
  }

  /// The path in the variable `IMAGEWORKER`, else that of the binary beside the test bundle.
  static func binary() throws -> String {
    if let path = ProcessInfo.processInfo.environment["IMAGEWORKER"] { return path }
    let bundles = [Bundle.main.bundleURL] + Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() }
    let executable = Bundle.main.executableURL.map { [$0.deletingLastPathComponent()] } ?? []
    let paths = (executable + bundles).map { $0.appending(path: "imageworker").path }
    guard let path = paths.first(where: FileManager.default.isExecutableFile) else {
      throw NeverHappened(what: "the built worker", seen: paths.joined(separator: "\n"))
    }
    return path
  }

  // MARK: - Towards the worker

  /// Sends a line and LF.
  func send(_ line: String) { child.write((line + "\n").utf8) }

  func send(_ lines: [JSON]) { child.write(lines.map { $0.line + "\n" }.joined().utf8) }

  /// Sends a request and returns its id.
  @discardableResult
  func request(_ method: String, _ params: JSON? = nil, id: JSON? = nil) -> JSON {
    let id = id ?? newID()
    send([requestLine(method, params, id: id)])
    return id
  }

  /// Sends a notification.
  func notify(_ method: String, _ params: JSON? = nil) {
    send([requestLine(method, params, id: nil)])
  }

  /// Sends a request and waits for its response.
  @discardableResult
  func call(_ method: String, _ params: JSON? = nil) async throws -> JSON {
    try await response(to: request(method, params))
  }

  /// Loads a URL and returns the result. An error is recorded as an issue.
  func load(
    _ url: String, _ params: JSON = [:], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> JSON {
    let response = try await call("load", JSON.object(["url": .string(url)]).merging(params))
    #expect(response["error"] == .null, sourceLocation: sourceLocation)
    return response["result"]
  }

  /// Loads a URL that must fail and returns the error.
  func failure(
    _ url: String, _ params: JSON = [:], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> JSON {
    let response = try await call("load", JSON.object(["url": .string(url)]).merging(params))
    #expect(response["error"] != .null, "\(response)", sourceLocation: sourceLocation)
    return response["error"]
  }

  // MARK: - From the worker

  /// All lines that the worker has written so far, in order.
  var lines: [JSON] { transcript.take(child.output.value).lines }

  func events(for id: JSON) -> [JSON] {
    lines.filter { $0["method"] != .null && $0["params"]["id"] == id }
  }

  /// Waits for the response with this id.
  func response(to id: JSON) async throws -> JSON {
    try await line("the response to \(id)") { $0["method"] == .null && $0["id"] == id }
  }

  /// Waits for an event with this name, of one request or of any.
  func event(_ name: String, for id: JSON? = nil) async throws -> JSON {
    try await line("the event \(name)") { line in
      line["method"] == .string(name) && (id == nil || line["params"]["id"] == id)
    }
  }

  /// Waits for the first matching line.
  func line(_ what: String, where fits: @escaping @Sendable (JSON) -> Bool) async throws -> JSON {
    try await lines(1, what, where: fits)[0]
  }

  /// Waits for this number of matching lines and returns them in order.
  func lines(
    _ count: Int, _ what: String, where fits: @escaping @Sendable (JSON) -> Bool
  ) async throws -> [JSON] {
    let transcript = transcript
    let found = try await child.output.until("\(count) x \(what)") { written -> [JSON]? in
      let found = transcript.take(written).lines.filter(fits)
      return found.count >= count ? Array(found.prefix(count)) : written.isClosed ? [] : nil
    }
    if found.count < count {
      let seen = "\(child.output.value)\nstandard error: \(child.errors.value)"
      throw NeverHappened(what: "\(count) x \(what)", seen: seen)
    }
    return found
  }

  // MARK: - Its end

  /// Closes the input, waits for the end of the worker and checks all lines.
  @discardableResult
  func end(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Ending {
    child.closeInput()
    child.startReading()
    let ending = try await child.ended()
    checkLines(sourceLocation)
    return ending
  }

  /// Checks standard output: complete lines of ASCII, each a JSON object (or an array, for a batch) of limited length;
  /// one response per request and nothing about it afterwards.
  func checkLines(_ sourceLocation: SourceLocation = #_sourceLocation) {
    let written = child.output.value
    #expect(written.rest.isEmpty, "a line was not finished: \(written)", sourceLocation: sourceLocation)
    let record = transcript.take(written)
    #expect(record.broken.isEmpty, sourceLocation: sourceLocation)
    if !longLines {
      let tooLong = written.lines.filter { $0.count > 60 * 1024 }
      #expect(tooLong.isEmpty, sourceLocation: sourceLocation)
    }
    var answered: Set<JSON> = []
    for line in record.lines where line["method"] != .null || line["id"] != .null {
      let isEvent = line["method"] != .null
      let id = isEvent ? line["params"]["id"] : line["id"]
      #expect(!answered.contains(id), "after its response: \(line)", sourceLocation: sourceLocation)
      if !isEvent { answered.insert(id) }
    }
  }

  private func newID() -> JSON {
    nextID.withLock { number in
      number += 1
      return .string("call \(number)")
    }
  }
}

/// A request as a line. Without an id it is a notification.
func requestLine(_ method: String, _ params: JSON? = nil, id: JSON?) -> JSON {
  var members: [String: JSON] = ["jsonrpc": "2.0", "method": .string(method)]
  members["params"] = params
  members["id"] = id
  return .object(members)
}

/// The parsed lines of the worker. Each line is parsed once.
private final class Transcript: Sendable {
  struct Record: Sendable {
    var lines: [JSON] = []
    /// A line that violates the protocol.
    var broken: [String] = []
    var taken = 0
  }

  private let record = Locked(Record())

  func take(_ written: Written) -> Record {
    record.withLock { record in
      guard written.lines.count > record.taken else { return record }
      for line in written.lines[record.taken...] {
        let isASCII = line.allSatisfy { $0 < 0x80 && $0 >= 0x20 }
        if isASCII, let value = try? JSON(parsing: line), isMessage(value) {
          record.lines.append(value)
        } else {
          record.broken.append(String(decoding: line, as: UTF8.self))
        }
      }
      record.taken = written.lines.count
      return record
    }
  }

  private func isMessage(_ value: JSON) -> Bool {
    switch value {
    case .array(let elements): !elements.isEmpty && elements.allSatisfy(isMessage)
    case .object: value["jsonrpc"] == "2.0"
    default: false
    }
  }
}

import Foundation
import Testing
import Threads

/// A process of `Tests/Origin/origin.py`, whose URLs define the responses; see its README.
final class OriginProcess: Sendable {
  let base: String
  /// The base URL of each origin if there are several.
  let bases: [String]
  /// The certificate authority of the origin, with `--tls`.
  let authority: String?

  private let child: ChildProcess
  private let nextCommand = Locked(0)

  init(_ options: [String] = []) async throws {
    let tests = URL(fileURLWithPath: #filePath).appending(path: "../../..").standardized.path
    // It needs the standard library alone. Its compiled modules are kept beside the builds.
    var environment = plainEnvironment
    environment["PYTHONDONTWRITEBYTECODE"] = nil
    environment["PYTHONPYCACHEPREFIX"] = "\(tests)/../.build-tests/pycache"
    child = try ChildProcess(
      Self.python.get(), ["-S", "\(tests)/Origin/origin.py"] + options, environment: environment)
    let child = child
    let first = try await child.output.until("the origin's port") { $0.lines.first ?? ($0.isClosed ? [] : nil) }
    guard let ready = try? JSON(parsing: first), let port = ready["port"].integer else {
      throw NeverHappened(what: "the origin's port", seen: child.errors.value.text)
    }
    let scheme = options.contains("--tls") ? "https" : "http"
    base = "\(scheme)://127.0.0.1:\(port)"
    bases = ready["ports"].array.compactMap(\.integer).map { "\(scheme)://127.0.0.1:\($0)" }
    authority = ready["ca"].string
  }

  /// The Python interpreter itself: on many machines `python3` is a script that looks for it each time.
  private static let python = Result {
    let finder = Process()
    let output = Pipe()
    finder.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    finder.arguments = ["python3", "-c", "import sys; print(sys.executable)"]
    finder.standardOutput = output
    try finder.run()
    let path = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    finder.waitUntilExit()
    return path.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// The URL of a target in the syntax of the README, such as `image/1.png?hold=a`.
  func url(_ target: String) -> String { "\(base)/\(target)" }

  /// Sends a command and waits for its answer.
  @discardableResult
  func perform(_ command: JSON) async throws -> JSON {
    let number = nextCommand.withLock { number in
      number += 1
      return number
    }
    child.write((command.merging(["id": .integer(number)]).line + "\n").utf8)
    let answer: JSON = try await child.output.until("the origin to \(command)") { written in
      let answers = written.lines.dropFirst().lazy.compactMap { line in try? JSON(parsing: line) }
      let answer: JSON? = answers.first { $0["id"] == .integer(number) }
      return answer ?? (written.isClosed ? .null : nil)
    }
    if answer == .null || answer["error"] != .null {
      throw NeverHappened(what: "the origin to \(command)", seen: answer.line + child.errors.value.text)
    }
    return answer
  }

  /// Waits until this number of exchanges waits at a gate.
  func held(_ count: Int = 1, at gate: String) async throws {
    try await perform(["do": "await", "gate": .string(gate), "held": .integer(count)])
  }

  /// Opens a gate permanently, or for a number of exchanges.
  func release(_ gate: String, count: Int? = nil) async throws {
    try await perform(["do": "release", "gate": .string(gate), "count": count.map(JSON.integer) ?? .null])
  }

  /// Waits until a counter of the origin has a value: `requests`, `left`, `complete`, `broken`, `open` or `active`.
  func reaches(_ name: String, _ count: Int) async throws {
    try await perform(.object(["do": "await", name: .integer(count)]))
  }

  /// Answers successive requests for a target like requests for these targets. The last one is used repeatedly.
  func script(_ target: String, _ answers: [String]) async throws {
    let lines = answers.map { JSON.string("/\($0)") }
    try await perform(["do": "script", "target": .string("/\(target)"), "answers": .array(lines)])
  }

  func counts() async throws -> JSON { try await perform(["do": "counts"]) }

  /// The exchanges so far with a target that contains the text.
  func log(_ path: String = "") async throws -> [JSON] {
    try await perform(["do": "log", "path": .string(path)])["exchanges"].array
  }

  /// The values of a header field in an exchange of the log.
  static func header(_ name: String, of exchange: JSON) -> [String] {
    exchange["headers"].array.filter { $0[0].string?.lowercased() == name }.compactMap(\.[1].string)
  }
}

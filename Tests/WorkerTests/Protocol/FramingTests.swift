import Foundation
import Testing

/// The rules of the protocol for framing.
@Suite struct FramingTests {
  @Test func `each request and each response is one line`() async throws {
    try await withWorker { worker in
      worker.send(#"{"jsonrpc":"2.0","id":1,"method":"stats"}"#)
      let response = try await worker.response(to: 1)
      #expect(response["jsonrpc"] == "2.0")
      #expect(response.names == ["jsonrpc", "id", "result"])
    }
  }

  @Test func `a CR before the LF is dropped`() async throws {
    try await withWorker { worker in
      worker.send("{\"id\":1,\"method\":\"stats\"}\r")
      let response = try await worker.response(to: 1)
      #expect(response["error"] == .null)
    }
  }

  @Test func `a byte order mark at the start is dropped`() async throws {
    try await withWorker { worker in
      worker.send("\u{FEFF}{\"id\":1,\"method\":\"stats\"}")
      let response = try await worker.response(to: 1)
      #expect(response["error"] == .null)
    }
  }

  @Test func `blank lines are skipped`() async throws {
    try await withWorker { worker in
      worker.send("\n\r\n\n")
      _ = try await worker.call("stats")
      #expect(worker.lines.count == 1)
    }
  }

  @Test func `a last line without LF is a request`() async throws {
    try await withWorker { worker in
      worker.child.write(#"{"id":"last","method":"stats"}"#.utf8)
      worker.child.closeInput()
      let response = try await worker.response(to: "last")
      #expect(response["error"] == .null)
    }
  }

  @Test func `empty input ends the worker with status 0`() async throws {
    try await withWorker { worker in
      let ending = try await worker.end()
      #expect(ending == .exit(0))
      #expect(worker.lines.isEmpty)
    }
  }

  @Test func `a request can arrive in any number of pieces`() async throws {
    try await withWorker { worker in
      for byte in #"{"id":"pieces-\u00e9-é","method":"stats"}"#.utf8 { worker.child.write([byte]) }
      worker.child.write("\n".utf8)
      let response = try await worker.response(to: "pieces-é-é")
      #expect(response["error"] == .null)
    }
  }

  @Test func `a thousand requests can arrive in one piece`() async throws {
    try await withWorker { worker in
      worker.send((1...1000).map { requestLine("query", ["key": .string("none \($0)")], id: .integer($0)) })
      let responses = try await worker.lines(1000, "response") { $0["id"] != .null }
      #expect(Set(responses.compactMap(\.["id"].integer)) == Set(1...1000))
    }
  }

  @Test func `output is ASCII for any input`() async throws {
    try await withWorker { worker in
      let id = "é \u{2028} \u{1F600} \u{0} \u{7F} \" \\ /"
      let response = try await worker.response(to: worker.request("nothing like it", id: .string(id)))
      #expect(response["id"].string == id)
      #expect(response["error"]["code"] == -32601)
    }
  }

  @Test func `invalid UTF-8 is a parse error`() async throws {
    try await withWorker { worker in
      for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xC3]] {
        let before = worker.lines.count
        worker.child.write(Array(#"{"id":1,"method":""#.utf8) + bytes + Array("\"}\n".utf8))
        let errors = try await worker.lines(before + 1, "error") { _ in true }
        #expect(errors.last?["error"]["code"] == -32700)
        #expect(errors.last?["error"]["data"]["kind"] == "parseError")
      }
    }
  }

  @Test func `an overlong line is answered with id null, and the next request is performed`() async throws {
    try await withWorker("--max-line", "100") { worker in
      worker.send(#"{"id":1,"method":"stats","params":{"a":""# + String(repeating: "x", count: 100_000) + "\"}}")
      worker.request("stats", id: 2)
      _ = try await worker.response(to: 2)
      let error = try await worker.line("the refusal") { $0["error"] != .null }
      #expect(error["id"] == .null)
      #expect(error["error"]["code"] == -32600)
      #expect(error["error"]["data"]["kind"] == "invalidRequest")
      #expect(worker.lines.count == 2)
    }
  }

  @Test func `the maximum length of a line is exactly that of the option`() async throws {
    let line = { (id: Int, length: Int) in
      let frame = #"{"id":\#(id),"method":"stats"}"#
      return frame + String(repeating: " ", count: length - frame.utf8.count)
    }
    try await withWorker("--max-line", "200") { worker in
      worker.send(line(1, 200))
      worker.send(line(2, 200) + "\r")
      worker.send(line(3, 201))
      worker.request("stats", id: 4)
      for id in [1, 2, 4] {
        let response = try await worker.response(to: .integer(id))
        #expect(response["error"] == .null)
      }
      let error = try await worker.line("the refusal") { $0["error"] != .null }
      #expect(error["id"] == .null && error["error"]["code"] == -32600)
    }
  }

  @Test func `an overlong last line is answered once`() async throws {
    try await withWorker("--max-line", "100") { worker in
      worker.child.write(Array(repeating: UInt8(ascii: " "), count: 1000))
      let ending = try await worker.end()
      #expect(ending == .exit(0))
      #expect(worker.lines.map { $0["error"]["code"] } == [-32600])
    }
  }

  @Test func `an overlong line is not buffered`() async throws {
    try await withWorker("--max-line", "1M") { worker in
      let before = try await worker.call("stats")["result"]["rssBytes"].integer ?? 0
      let megabyte = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
      for _ in 0..<64 { worker.child.write(megabyte) }
      worker.send("")
      let after = try await worker.call("stats")["result"]["rssBytes"].integer ?? .max
      #expect(after - before < 16 << 20)
    }
  }

  @Test(arguments: brokenLines)
  func `invalid JSON is a parse error, and the next request is answered`(line: String) async throws {
    try await withWorker { worker in
      worker.send(line)
      worker.request("stats", id: "next")
      let error = try await worker.line("the refusal") { $0["error"] != .null }
      #expect(error["id"] == .null)
      #expect(error["error"]["code"] == -32700)
      #expect(error["error"]["data"]["kind"] == "parseError")
      #expect(try await worker.response(to: "next")["error"] == .null)
    }
  }

  static let brokenLines = [
    "{", "}", "[1,]", #"{"id":1,}"#, #"{"id":01}"#, #"{'id':1}"#, #"{"id":1}{"id":2}"#, #"{"id":.5}"#, #"{"id":+1}"#,
    #"{"a":"\x"}"#, "{\"a\":\"\t\"}", #"{"a":"\ud800"# + "\"", "nul", "NaN", "// comment", #"{"a":1 "b":2}"#,
    #"{"id":1,"id":2,"method":"stats"}"#, #"{"id":1,"method":"query","params":{"key":"a","k\u0065y":"b"}}"#,
    String(repeating: "[", count: 100_000),
  ]

  /// Sends every file of the suite that fits on a line, each followed by a valid request.
  @Test(.enabled(if: JSONSuite.folder != nil, "the JSON test suite is not in a folder above"))
  func `the lines of the JSON test suite are answered as the suite requires`() async throws {
    try await withWorker(longLines: true) { worker in
      for file in try JSONSuite.files() {
        let before = worker.lines.count
        worker.child.write(file.line + [UInt8(ascii: "\n")])
        worker.request("stats", id: .string(file.name))
        #expect(try await worker.response(to: .string(file.name))["error"] == .null, "\(file.name)")
        guard let verdict = file.verdict else { continue }
        let lines = try await worker.lines(before + 2, "two lines for \(file.name)") { _ in true }[before...]
        let codes = lines.filter { $0["id"] != .string(file.name) }.map { $0["error"]["code"] }
        #expect(codes.count == 1 && (codes[0] == -32700) == (verdict == .broken), "\(file.name)")
      }
    }
  }
}

/// The JSON test suite in `shared/json-test-suite`, searched in all parent folders.
enum JSONSuite {
  enum Verdict { case sound, broken }

  struct File {
    let name: String
    let line: [UInt8]
    /// Nil if a parser may accept or refuse the text, or if there is no answer.
    let verdict: Verdict?
  }

  static let folder: URL? = {
    var above = URL(fileURLWithPath: #filePath)
    while above.path != "/" {
      above.deleteLastPathComponent()
      let folder = above.appending(path: "shared/json-test-suite")
      if FileManager.default.fileExists(atPath: folder.path) { return folder }
    }
    return nil
  }()

  static func files() throws -> [File] {
    guard let folder else { return [] }
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
      .compactMap { url in
        var line = try contents(of: url.path)
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        guard !line.contains(UInt8(ascii: "\n")) else { return nil }
        let name = url.deletingPathExtension().lastPathComponent
        return File(name: name, line: line, verdict: verdict(name, line))
      }
  }

  private static func verdict(_ name: String, _ line: [UInt8]) -> Verdict? {
    let isBlank = line.drop { $0 == 0xEF || $0 == 0xBB || $0 == 0xBF }.allSatisfy { $0 == UInt8(ascii: " ") }
    if isBlank || name.hasPrefix("i_") { return nil }
    // Duplicate keys are valid JSON, but the worker refuses them.
    return name.hasPrefix("n_") || name.hasPrefix("y_object_duplicated_key") ? .broken : .sound
  }
}

import Foundation
import Testing

/// How the worker ends, and what it still does before.
@Suite struct EndOfInputTests {
  @Test func `everything accepted is finished and answered`() async throws {
    try await withOrigin { worker, origin in
      let ids = (1...200).map { number in
        worker.request("load", ["url": .string(origin.url("image/\(number).png?bytes=10000&hold=a"))])
      }
      try await origin.held(6, at: "a")
      worker.child.closeInput()
      try await origin.release("a")
      #expect(try await worker.end() == .exit(0))
      for id in ids { #expect(try await worker.response(to: id)["result"]["bytes"] == 10_000) }
    }
  }

  @Test func `with cancel, whatever is outstanding is answered cancelled`() async throws {
    try await withOrigin("--eof", "cancel") { worker, origin in
      let ids = (1...20).map { worker.request("load", ["url": .string(origin.url("image/\($0).png?hold=a"))]) }
      try await origin.held(6, at: "a")
      #expect(try await worker.end() == .exit(0))
      for id in ids {
        let error = try await worker.response(to: id)["error"]
        #expect(error["code"] == -32800)
        #expect(error["data"]["kind"] == "cancelled")
      }
    }
  }

  @Test func `what waits while paused is still loaded at the end of input`() async throws {
    try await withOrigin { worker, origin in
      try await worker.call("pause")
      let id = worker.request("load", ["url": .string(origin.url("image/1.png"))])
      #expect(try await worker.end() == .exit(0))
      #expect(try await worker.response(to: id)["result"]["format"] == "png")
    }
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a signal answers everything outstanding and ends with 0`(signal: Int32) async throws {
    try await withOrigin { worker, origin in
      let ids = (1...20).map { worker.request("load", ["url": .string(origin.url("image/\($0).png?hold=a"))]) }
      try await origin.held(6, at: "a")
      worker.child.signal(signal)
      #expect(try await worker.child.ended() == .exit(0))
      for id in ids { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
      worker.checkLines()
      #expect(try await origin.counts()["requests"] == 6)
    }
  }

  @Test(arguments: [("< /", "cannot read standard input"), (">&-", "")])
  func `streams that cannot be used end it with 74`(redirection: String, message: String) async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let command = "echo '{\"id\":1,\"method\":\"stats\"}' | \"$0\" --cache-dir \"$1\" \(redirection)"
      let child = try ChildProcess(
        "/bin/sh", ["-c", command, try WorkerProcess.binary(), directory.path], environment: plainEnvironment)
      #expect(try await child.ended() == .exit(74))
      #expect(child.errors.value.text.contains(message) || message.isEmpty)
    }
  }

  @Test(arguments: ["all", "none"])
  func `a signal leaves no temporary files of the bodies that were arriving`(store: String) async throws {
    for _ in 0..<5 {
      let temporary = try TemporaryDirectory()
      try await withOrigin(environment: ["TMPDIR": temporary.path]) { worker, origin in
        for number in 0..<6 {
          let url = origin.url("image/\(number).png?bytes=1000000&hold=a@600000")
          worker.request("load", ["url": .string(url), "store": .string(store)])
        }
        try await origin.held(6, at: "a")
        worker.child.signal(SIGTERM)
        #expect(try await worker.child.ended() == .exit(0))
        for folder in [temporary.path, worker.directory.path] {
          let left = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".tmp") }
          #expect(left == [])
        }
      }
    }
  }

  @Test func `a second signal ends it at once`() async throws {
    try await withOrigin { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      worker.child.signal(SIGTERM)
      worker.child.signal(SIGTERM)
      let ending = try await worker.child.ended()
      // The first one may already have ended it in an orderly way.
      #expect(ending == .exit(0) || ending == .exit(128 + SIGTERM) || ending == .signal(SIGTERM))
    }
  }

  @Test func `when nobody reads any more it stops at once, even if there is nothing to say`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(reads: false)
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      try worker.child.closeOutput()
      #expect(try await worker.child.ended() == .exit(74))
    }
  }

  @Test func `a response that nobody reads any more ends it too`() async throws {
    try await turns.taking {
      let worker = try WorkerProcess(reads: false)
      try worker.child.closeOutput()
      worker.request("stats")
      #expect(try await worker.child.ended() == .exit(74))
    }
  }

  @Test func `a host that is killed leaves no worker behind`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let directory = try TemporaryDirectory()
      // The host's own children keep its standard error open: that it is closed means that they are gone as well.
      let script = """
        import subprocess, sys
        worker = subprocess.Popen(sys.argv[1:3] + [sys.argv[3]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        worker.stdin.write(sys.argv[4].encode() + b"\\n")
        worker.stdin.flush()
        sys.stdin.read()
        """
      let load = requestLine("load", ["url": .string(origin.url("image/1.png?hold=a"))], id: 1).line
      let arguments = ["python3", "-c", script, try WorkerProcess.binary(), "--cache-dir", directory.path, load]
      let host = try ChildProcess("/usr/bin/env", arguments, environment: plainEnvironment)
      try await origin.held(at: "a")
      host.signal(SIGKILL)
      #expect(try await host.ended() == .signal(SIGKILL))
      try await origin.reaches("open", 0)
    }
  }

  @Test func `with --exit-status an error makes it 3`() async throws {
    try await withOrigin("--exit-status") { worker, origin in
      _ = try await worker.failure(origin.url("image/1.png?status=404"))
      #expect(try await worker.end() == .exit(3))
    }
    try await withOrigin("--exit-status") { worker, origin in
      _ = try await worker.load(origin.url("image/1.png"))
      #expect(try await worker.end() == .exit(0))
    }
  }

  @Test(arguments: ["1", #"{"id":2,"method":"pause","jsonrpc":"1.0"}"#, #"{"id":1,"method":"pause"}"#])
  func `with --exit-status a refused member of a batch makes it 3`(refused: String) async throws {
    try await withOrigin("--exit-status") { worker, origin in
      worker.send(#"[{"id":1,"method":"pause"},\#(refused)]"#)
      let end = try await worker.end()
      #expect(end == .exit(3))
    }
  }

  @Test func `with --exit-status a signal that cancels something makes it 3`() async throws {
    try await withOrigin("--exit-status") { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      worker.child.signal(SIGTERM)
      #expect(try await worker.child.ended() == .exit(3))
    }
  }

  @Test func `shutdown answers, then the worker ends although its input is open`() async throws {
    try await withOrigin { worker, origin in
      let load = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      let shutdown = worker.request("shutdown", ["mode": "drain"])
      let late = try await worker.call("load", ["url": .string(origin.url("image/2.png"))])["error"]
      #expect(late["data"]["kind"] == "shuttingDown")
      #expect(late["code"] == 5001)
      try await origin.release("a")
      #expect(try await worker.response(to: shutdown)["result"] == [:])
      #expect(try await worker.response(to: load)["result"]["format"] == "png")
      #expect(try await worker.child.ended() == .exit(0))
      worker.checkLines()
    }
  }

  @Test func `a signal while shutdown waits cancels the rest and lets it be answered`() async throws {
    try await withOrigin { worker, origin in
      let load = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      let shutdown = worker.request("shutdown")
      // Refused: by now the shutdown has taken effect.
      #expect(try await worker.call("stats")["error"]["data"]["kind"] == "shuttingDown")
      worker.child.signal(SIGTERM)
      #expect(try await worker.child.ended() == .exit(0))
      #expect(try await worker.response(to: load)["error"]["code"] == -32800)
      #expect(try await worker.response(to: shutdown)["result"] == [:])
      worker.checkLines()
    }
  }

  @Test func `shutdown by cancel answers everything cancelled first`() async throws {
    try await withOrigin { worker, origin in
      let load = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      #expect(try await worker.call("shutdown", ["mode": "cancel"])["result"] == [:])
      #expect(try await worker.response(to: load)["error"]["code"] == -32800)
      #expect(try await worker.child.ended() == .exit(0))
      worker.checkLines()
    }
  }

  @Test func `a last response that cannot be written is no success`() async throws {
    try await turns.taking {
      let directory = try TemporaryDirectory()
      let script = #"echo '{"id":1,"method":"stats"}' | "$0" --cache-dir "$1" > /dev/full"#
      let shell = try ChildProcess(
        "/bin/sh", ["-c", script, try WorkerProcess.binary(), directory.path], environment: plainEnvironment)
      #expect(try await shell.ended() == .exit(74))
    }
  }
}

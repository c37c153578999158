import Foundation
import Testing

/// The end of the worker, and the work that it finishes before.
@Suite struct EndOfInputTests {
  @Test func `all accepted requests are finished and answered`() async throws {
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

  @Test func `with eof cancel, all unanswered requests are answered with cancelled`() async throws {
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

  @Test func `loads that wait in a paused worker are finished at the end of input`() async throws {
    try await withOrigin { worker, origin in
      try await worker.call("pause")
      let id = worker.request("load", ["url": .string(origin.url("image/1.png"))])
      #expect(try await worker.end() == .exit(0))
      #expect(try await worker.response(to: id)["result"]["format"] == "png")
    }
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a signal cancels all unanswered requests and ends the worker with 0`(signal: Int32) async throws {
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
  func `unusable standard streams end the worker with 74`(redirection: String, message: String) async throws {
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
  func `a signal leaves no temporary files of incomplete bodies`(store: String) async throws {
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

  @Test func `a second signal ends the worker at once`() async throws {
    try await withOrigin { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      worker.child.signal(SIGTERM)
      worker.child.signal(SIGTERM)
      let ending = try await worker.child.ended()
      // The first signal may already have ended the worker with its normal status.
      #expect(ending == .exit(0) || ending == .exit(128 + SIGTERM) || ending == .signal(SIGTERM))
    }
  }

  @Test func `the worker ends at once when its output is closed, even without output to write`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(reads: false)
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      try worker.child.closeOutput()
      #expect(try await worker.child.ended() == .exit(74))
    }
  }

  @Test func `a response that cannot be written ends the worker`() async throws {
    try await turns.taking {
      let worker = try WorkerProcess(reads: false)
      try worker.child.closeOutput()
      worker.request("stats")
      #expect(try await worker.child.ended() == .exit(74))
    }
  }

  @Test func `the worker ends when its host is killed`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let directory = try TemporaryDirectory()
      // The children of the host keep its standard error open, so its end shows that they have ended as well.
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

  @Test func `with --exit-status, a failed request makes the status 3`() async throws {
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
  func `with --exit-status, a refused member of a batch makes the status 3`(refused: String) async throws {
    try await withOrigin("--exit-status") { worker, origin in
      worker.send(#"[{"id":1,"method":"pause"},\#(refused)]"#)
      let end = try await worker.end()
      #expect(end == .exit(3))
    }
  }

  @Test func `with --exit-status, a signal that cancels a request makes the status 3`() async throws {
    try await withOrigin("--exit-status") { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      worker.child.signal(SIGTERM)
      #expect(try await worker.child.ended() == .exit(3))
    }
  }

  @Test func `shutdown is answered, and the worker ends although its input is open`() async throws {
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

  @Test func `a signal during a shutdown cancels the remaining requests, and the shutdown is answered`() async throws {
    try await withOrigin { worker, origin in
      let load = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      let shutdown = worker.request("shutdown")
      // It is refused, which shows that the shutdown has taken effect.
      #expect(try await worker.call("stats")["error"]["data"]["kind"] == "shuttingDown")
      worker.child.signal(SIGTERM)
      #expect(try await worker.child.ended() == .exit(0))
      #expect(try await worker.response(to: load)["error"]["code"] == -32800)
      #expect(try await worker.response(to: shutdown)["result"] == [:])
      worker.checkLines()
    }
  }

  @Test func `shutdown with mode cancel first answers all requests with cancelled`() async throws {
    try await withOrigin { worker, origin in
      let load = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      #expect(try await worker.call("shutdown", ["mode": "cancel"])["result"] == [:])
      #expect(try await worker.response(to: load)["error"]["code"] == -32800)
      #expect(try await worker.child.ended() == .exit(0))
      worker.checkLines()
    }
  }

  @Test func `the status is not 0 if the last response cannot be written`() async throws {
    try await turns.taking {
      let directory = try TemporaryDirectory()
      let script = #"echo '{"id":1,"method":"stats"}' | "$0" --cache-dir "$1" > /dev/full"#
      let shell = try ChildProcess(
        "/bin/sh", ["-c", script, try WorkerProcess.binary(), directory.path], environment: plainEnvironment)
      #expect(try await shell.ended() == .exit(74))
    }
  }
}

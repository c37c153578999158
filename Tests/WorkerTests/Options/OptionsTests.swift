import Foundation
import Testing

/// The command line: output and exit status.
@Suite struct OptionsTests {
  @Test(arguments: [
    ["--nonsense"], ["--cache-dir"], ["--cache-dir", "--exit-status"],
    ["--max-concurrent", "many"], ["--max-concurrent", "-1"], ["--max-line", "1X"], ["--decode-memory", "127M"],
    ["--timeout", "15"], ["--timeout", "soon"], ["--order", "random"], ["--eof", "never"], ["--events", "nope"],
    ["--verify", "often"], ["--network", "private"], ["--resolver", "dns"], ["--log-level", "loud"],
    ["--log-format", "xml"],
    ["--min-free", "500%"],
    ["--header", "x"], ["--header", "x; y"], ["--header", ";"], ["--header", ":"], ["--header", "Host:"],
    ["--header", "Connection:"], ["--header", "Range: "],
    ["--proxy", "nonsense://host"], ["--proxy", "http://u:p@host:99999"], ["--proxy", "[::1]:x/"], ["stray"],
    ["--retries", "1.5"], ["--disk-limit", "5ß"], ["--max-pixels", "1000000000G"],
  ])
  func `an invalid option is reported in one line on standard error, with exit status 64`(options: [String])
    async throws
  {
    let result = try await outcome(of: options)
    #expect(result.ending == .exit(64))
    #expect(result.output.isEmpty)
    #expect(result.errors.split(separator: "\n").count == 1)
    #expect(result.errors.contains(options[0]))
  }

  @Test(arguments: [
    (["--max-concurent", "8"], "did you mean --max-concurrent?"), (["https://example.com/a.jpg"], "standard input"),
    (["--events", "progress,done"], #"(given: "done")"#),
    (["--cache-dir", "--exit-status"], #"must have a value: DIR (given: "--exit-status")"#),
  ])
  func `the error for an option says what was probably meant`(options: [String], hint: String) async throws {
    let result = try await outcome(of: options)
    #expect(result.ending == .exit(64))
    #expect(result.errors.contains(hint))
  }

  @Test func `a self-test loads a thumbnail and reports what it found`() async throws {
    let directory = try TemporaryDirectory()
    let result = try await outcome(of: ["--self-test", "--cache-dir", directory.appending("cache")])
    #expect(result.ending == .exit(0))
    let lines = result.output.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 2).map(String.init) }
    let found = lines.map { $0.prefix(2).joined(separator: " ") }
    for subject in ["version", "cache", "decoder", "formats", "sandbox", "thumbnail", "descriptors"] {
      #expect(found.contains("ok \(subject)"), "\(result.output)")
    }
  }

  @Test func `a self-test fails if the cache directory cannot be used`() async throws {
    let result = try await outcome(of: ["--self-test", "--cache-dir", "/dev/null/cache"])
    #expect(result.ending == .exit(1))
    #expect(result.output.contains("failed   worker"))
    #expect(result.output.contains("the cache directory /dev/null/cache/default cannot be used"))
  }

  @Test(arguments: [
    ["--header", "Authorization: xyzzy\r\nX: y"], ["--user-agent", "a\nb"], ["--proxy", "nonsense://u:xyzzy@host\n"],
    ["--no\nsense"],
  ])
  func `the error for an option is one line without secrets`(options: [String]) async throws {
    let result = try await outcome(of: options)
    #expect(result.ending == .exit(64))
    #expect(result.errors.filter { $0.isNewline }.count == 1)
    #expect(!result.errors.contains("xyzzy"))
  }

  @Test func `a file of header fields is refused with an explanation`() async throws {
    for file in ["@headers.txt", "@/tmp/a: b"] {
      let result = try await outcome(of: ["--header", file])
      #expect(result.ending == .exit(64))
      #expect(result.errors.split(separator: "\n").count == 1)
      #expect(result.errors.contains("fields cannot be read from a file"))
      #expect(!result.errors.contains(file))
    }
  }

  @Test func `a header that configure refuses is not quoted`() async throws {
    try await withWorker { worker in
      let error = try await worker.call("configure", ["header": ["Authorization: xyzzy\u{1}"]])["error"]
      #expect(error["data"]["member"] == "header")
      #expect(error["message"].string?.contains("xyzzy") == false)
    }
  }

  @Test(arguments: [
    ["--max-concurrent=8"], ["--memory-limit", "64M"], ["--memory-limit", "0"], ["--max-age", "1h"],
    ["--timeout", "500ms"],
    ["--order", "lifo"], ["--header", "A: b", "--header", "C: d"],
    ["--header", "A;", "--header", "Accept:", "--header", "B:"], ["--events", "started,progress"],
    ["--min-free", "0%"],
  ])
  func `a valid option is accepted without output`(options: [String]) async throws {
    let directory = try TemporaryDirectory()
    let result = try await outcome(of: options + ["--cache-dir", directory.path])
    #expect(result.ending == .exit(0))
    #expect(result.output.isEmpty)
    #expect(result.errors.isEmpty)
  }

  @Test func `an unusable cache directory is named, with exit status 73`() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.appending("file")
    try "not a folder".write(toFile: file, atomically: true, encoding: .utf8)
    let occupied = directory.appending("occupied")
    try FileManager.default.createDirectory(
      atPath: "\(occupied)/default/index.sqlite", withIntermediateDirectories: true)
    let deep = directory.path + String(repeating: "/" + String(repeating: "d", count: 99), count: 5)
    for path in [file, "\(file)/below", "/dev/null/cache", occupied, deep] {
      let result = try await outcome(of: ["--cache-dir", path])
      #expect(result.ending == .exit(73))
      #expect(result.errors.split(separator: "\n").count == 1)
      #expect(result.errors.contains(path))
      #expect(result.output.isEmpty)
    }
  }

  @Test func `an unreadable cookie file is named, with exit status 66`() async throws {
    let directory = try TemporaryDirectory()
    for path in [directory.appending("nothing"), directory.path] {
      let result = try await outcome(of: ["--cache-dir", directory.appending("cache"), "--cookies", path])
      #expect(result.ending == .exit(66))
      #expect(result.errors.split(separator: "\n").count == 1)
      #expect(result.errors.contains(path))
      #expect(result.output.isEmpty)
    }
  }

  @Test(arguments: [("[{\"name\":\"a\"}]\n", Int32(66)), ("# Netscape HTTP Cookie File\n\n", 0), ("", 0)])
  func `a cookie file without a line that is a cookie is refused unless it is empty`(
    text: String, status: Int32
  ) async throws {
    let directory = try TemporaryDirectory()
    let path = directory.appending("cookies")
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    let result = try await outcome(of: ["--cache-dir", directory.appending("cache"), "--cookies", path])
    #expect(result.ending == .exit(status))
    #expect(result.errors.contains("holds no cookie") == (status == 66))
  }

  @Test func `the cache is in XDG_CACHE_HOME, else below the home folder`() async throws {
    let home = try TemporaryDirectory()
    let binary = try WorkerProcess.binary()
    for (environment, folder) in [
      (["HOME": home.path, "XDG_CACHE_HOME": home.appending("xdg")], "xdg/imageworker"),
      (["HOME": home.path], ".cache/imageworker"),
    ] {
      let child = try ChildProcess(binary, [], environment: environment)
      child.closeInput()
      #expect(try await child.ended() == .exit(0))
      #expect(FileManager.default.fileExists(atPath: home.appending(folder)))
    }
  }

  @Test func `--version and --help are printed`() async throws {
    let version = try await outcome(of: ["--version"])
    #expect(version.ending == .exit(0))
    #expect(version.output.hasPrefix("imageworker "))
    #expect(version.output.split(separator: "\n").count == 1)
    let help = try await outcome(of: ["--help"])
    #expect(help.ending == .exit(0))
    for option in Self.options { #expect(help.output.contains(option), "\(option)") }
  }

  @Test func `--describe is an OpenRPC document with every method`() async throws {
    let result = try await outcome(of: ["--describe"])
    #expect(result.ending == .exit(0))
    let document = try JSON(parsing: result.output.utf8)
    #expect(document["openrpc"].string?.hasPrefix("1.") == true)
    #expect(Set(document["methods"].array.compactMap(\.["name"].string)).isSuperset(of: Self.methods))
  }

  @Test func `initialize describes the worker and its capabilities`() async throws {
    try await withWorker { worker in
      let result = try await worker.call(
        "initialize", ["protocolVersion": 1, "client": ["name": "t", "version": "0"]])[
          "result"]
      #expect(result["server"]["name"] == "imageworker")
      #expect(result["protocolVersion"] == 1)
      #expect(Set(result["methods"].array.compactMap(\.string)).isSuperset(of: Self.methods))
      #expect(result["cache"]["namespace"] == "default")
      #expect(result["cache"]["directory"].string?.hasPrefix(worker.directory.path) == true)
      #expect(result.names.isSuperset(of: ["events", "limits"]))
      #expect(result.names.isDisjoint(with: ["formats", "sandbox"]))
    }
  }

  @Test func `text options have a maximum length, which bounds the answer to configure`() async throws {
    try await withWorker { worker in
      let long = String(repeating: "x", count: 9_000)
      let options: JSON = [
        "userAgent": .string(long), "header": [.string("X-A: " + long)], "keyIgnoreQuery": [.string(long)],
        "proxy": .string("http://" + long),
      ]
      // The harness refuses lines longer than 60 kB.
      #expect(try await worker.call("configure", options)["result"]["userAgent"] == .string(long))
      for (member, value): (String, JSON) in [
        ("userAgent", .string(long + long)), ("header", [.string("X-A: " + long), .string("X-B: " + long)]),
        ("events", .array([JSON](repeating: "started", count: 2000))),
      ] {
        let error = try await worker.call("configure", [member: value])["error"]
        #expect(error["code"] == -32602)
        #expect(error["data"]["member"] == .string(member))
      }
    }
  }

  @Test func `another version of the protocol is refused`() async throws {
    try await withWorker { worker in
      let error = try await worker.call("initialize", ["protocolVersion": 2])["error"]
      #expect(error["code"] == -32602)
      #expect(error["data"]["supported"] == [1])
    }
  }

  @Test func `options of initialize take effect`() async throws {
    try await withOrigin { worker, origin in
      let refused = try await worker.call("initialize", ["options": ["maxBytes": 100], "formats": "all"])["error"]
      #expect(refused["data"]["kind"] == "invalidParams" && refused["message"].string?.contains("formats") == true)
      #expect(try await worker.call("configure")["result"]["maxBytes"] != 100)
      try await worker.call("initialize", ["options": ["maxBytes": 100]])
      #expect(try await worker.failure(origin.url("image/1.png?bytes=1000"))["data"]["kind"] == "tooLarge")
    }
  }

  static let methods: Set<String> = [
    "initialize", "load", "prefetch", "cancel", "prioritize", "pause", "resume", "query", "store", "clear", "stats",
    "configure", "shutdown",
  ]

  static let options = [
    "--cache-dir", "--cache-namespace", "--read-only-cache", "--memory-limit", "--disk-limit", "--max-age",
    "--max-concurrent", "--max-per-host", "--max-line", "--max-redirects", "--max-queued", "--order", "--timeout",
    "--connect-timeout", "--deadline", "--retries", "--failed-ttl", "--max-bytes", "--max-pixels", "--decoders",
    "--decoder-lifetime", "--decode-timeout", "--decode-memory", "--min-free", "--verify", "--resolver", "--network",
    "--proxy",
    "--user-agent", "--header", "--cookies", "--insecure", "--key-ignore-query", "--events", "--eof", "--exit-status",
    "--log-level",
    "--log-format", "--version", "--help", "--describe",
  ]
}

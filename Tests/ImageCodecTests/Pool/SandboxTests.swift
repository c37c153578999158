#if os(Linux)
  import Foundation
  import Testing

  @testable import ImageCodec

  /// `sandbox-probe` attempts to escape from the decoder's sandbox and reports the results.
  struct SandboxTests {
    private static let ways = [
      "open a file", "list a directory", "create a file", "open a socket", "connect", "run a program",
      "become a program", "make a process",
      "trace the parent", "signal the parent", "reopen itself", "set a limit",
    ]

    private func tryEscape(behind lock: String?) throws -> [String: String] {
      let process = Process()
      let decoder = URL(filePath: try DecoderExecutable.find())
      process.executableURL = decoder.deletingLastPathComponent().appending(path: "sandbox-probe")
      process.arguments = lock.map { [$0] } ?? []
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
      var outcomes: [String: String] = [:]
      for line in text.split(separator: "\n") {
        let pair = line.split(separator: ":", maxSplits: 1).map(String.init)
        if pair.count == 2 { outcomes[pair[0]] = pair[1].trimmingCharacters(in: .whitespaces) }
      }
      return outcomes
    }

    @Test func `without the sandbox every attempt succeeds, so that the test proves something`() throws {
      let outcomes = try tryEscape(behind: "none")
      for way in Self.ways where !["create a file", "trace the parent"].contains(way) {
        #expect(outcomes[way] == "done", "\(way)")
      }
      try? FileManager.default.removeItem(atPath: "/tmp/imageworker-escape")
    }

    @Test func `with the sandbox every attempt is refused, and descriptors that were passed in can be read`() throws {
      let outcomes = try tryEscape(behind: nil)
      #expect(outcomes["in force"]?.contains("seccomp") == true)
      for way in Self.ways { #expect(outcomes[way]?.hasPrefix("refused") == true, "\(way): \(outcomes[way] ?? "-")") }
      #expect(outcomes["read what was open before"] == "done")
    }

    @Test func `Landlock alone denies files, programs and the network`() throws {
      let outcomes = try tryEscape(behind: "landlock")
      guard outcomes["in force"] == "landlock" else { return print("this kernel has no Landlock") }
      for way in ["open a file", "list a directory", "create a file", "run a program", "reopen itself"] {
        #expect(outcomes[way]?.hasPrefix("refused") == true, "\(way)")
      }
    }

    @Test func `seccomp alone denies every attempt`() throws {
      let outcomes = try tryEscape(behind: "seccomp")
      #expect(outcomes["in force"] == "seccomp")
      for way in Self.ways { #expect(outcomes[way]?.hasPrefix("refused") == true, "\(way)") }
    }

    // MARK: An image that has taken over the process which decodes it

    /// - Parameter lifetime: of the processes.
    private func holed(
      lifetime: Int = 1, timeout: Duration = .seconds(3600), elapsedLimit: Duration = .seconds(3600)
    ) throws -> Decoding {
      let probe = URL(filePath: try DecoderExecutable.find()).deletingLastPathComponent().appending(
        path: "sandbox-probe")
      return try Decoding(
        timeout: timeout, elapsedLimit: elapsedLimit, memory: 1 << 30, executable: probe.path, lifetime: lifetime)
    }

    private func image(trying attempt: String? = nil) async throws -> [UInt8] {
      let image = try await Decoding.shared().encoded(Pictures.quarters(8, 8).png(), as: .jpeg)
      return image + (attempt.map { Build.text("HOLE:\($0)") } ?? [])
    }

    @Test(
      arguments: ways + [
        "see the image before", "reach another descriptor", "kill everything", "kill its group",
        "wait for another process", "outlive its parent", "share memory", "read the memory of its parent",
        "change its priority", "leave its session", "take all memory",
      ])
    func `an image that has taken over its process reaches nothing`(attempt: String) async throws {
      let decoding = try holed()
      #expect(try await decoding.run(try decoding.task(try await image(), .check)).get().sourceWidth == 1)
      let outcome = await decoding.run(try decoding.task(try await image(trying: attempt), .check))
      guard case .failure(.io(let text)) = outcome else { return #expect(Bool(false), "\(outcome)") }
      #expect(text.hasPrefix("refused"), "\(text)")
      #expect(try await decoding.run(try decoding.task(try await image(), .check)).get().sourceWidth == 1)
    }

    @Test func `with a longer lifetime an image sees those before, so that the test proves something`() async throws {
      let decoding = try holed(lifetime: 2)
      _ = try await decoding.run(try decoding.task(try await image(), .check)).get()
      let outcome = await decoding.run(try decoding.task(try await image(trying: "see the image before"), .check))
      #expect(outcome == .failure(.io("done")))
    }

    @Test(
      arguments: [
        "answer twice", "answer as its parent", "announce formats", "answer with the file of another", "flood",
        "send a descriptor", "stay after the answer", "compute", "crash",
      ])
    func `an image that has taken over its process harms its own load only`(attempt: String) async throws {
      let limits: (Duration, Duration) =
        switch attempt {
        case "stay after the answer": (.seconds(3600), .seconds(5))
        case "compute": (.seconds(3), .seconds(3600))
        default: (.seconds(3600), .seconds(3600))
        }
      let decoding = try holed(timeout: limits.0, elapsedLimit: limits.1)
      let path = decoding.newPath()
      async let other = decoding.run(try decoding.task(try await image(), .check))
      let outcome = await decoding.run(try decoding.task(try await image(trying: attempt), .encoded(path)))
      switch (attempt, outcome) {
      case ("stay after the answer", .failure(.timedOut)), ("compute", .failure(.timedOut)): break
      // The descriptor is dropped, and a second answer is read only if it comes with the first.
      case ("send a descriptor", .failure(.io("sent"))), ("answer twice", .failure(.io("sent"))): break
      case (_, .failure(.crashed)): break
      default: #expect(Bool(false), "\(outcome)")
      }
      #expect(!FileManager.default.fileExists(atPath: path))
      #expect(try await other.get().sourceWidth == 1)
      #expect(try await decoding.run(try decoding.task(try await image(), .check)).get().sourceWidth == 1)
    }
  }
#endif

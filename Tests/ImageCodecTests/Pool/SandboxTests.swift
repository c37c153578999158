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
  }
#endif

import Foundation
import Testing

/// A host that does not read.
@Suite struct BackPressureTests {
  @Test func `no response is lost`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      let count = 2000
      let ids = (1...count).map { number in
        worker.request("load", ["url": .string(origin.url("image/\(number).png?cache-control=max-age%3D60"))])
      }
      // The pipe holds far less than all the answers, so that the worker is stuck well before the last of them.
      try await origin.reaches("requests", 100)
      worker.child.startReading()
      for id in ids {
        let response = try await worker.response(to: id)
        #expect(response["result"]["format"] == "png")
      }
      #expect(try await worker.end() == .exit(0))
    }
  }

  @Test func `while output is stuck no new transfers start`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      try await fillOutput(of: worker)
      worker.request("load", ["url": .string(origin.url("image/1.png"))], id: "stuck")
      // Another worker's load is the proof that the origin would have answered in the meantime.
      let other = try WorkerProcess(directory: TemporaryDirectory())
      _ = try await other.load(origin.url("image/2.png"))
      #expect(try await other.end() == .exit(0))
      #expect(try await origin.log("image/1.png").isEmpty)
      worker.child.startReading()
      #expect(try await worker.response(to: "stuck")["result"]["format"] == "png")
      #expect(try await worker.end() == .exit(0))
    }
  }

  /// Each takes 4 MB as a line.
  @Test(arguments: ["all", "memory", "disk"]) func `images wait to be made into lines`(store: String) async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      let url = origin.url("image/1.png?bytes=3000000&cache-control=max-age%3D60")
      worker.request("load", ["url": .string(url), "deliver": "none", "store": .string(store)])
      try await origin.reaches("complete", 1)
      for _ in 0..<100 {
        worker.request("load", ["url": .string(url), "deliver": "data", "store": .string(store)])
        // Some join the transfer, others find what came of it.
        try await Task.sleep(for: .milliseconds(1))
      }
      let saved = worker.directory.path + "/saved"
      worker.request("load", ["url": .string(url), "deliver": "none", "saveTo": .string(saved)])
      while !FileManager.default.fileExists(atPath: saved) { try await Task.sleep(for: .milliseconds(5)) }
      let transfers = try await origin.counts()["requests"]
      if let peak = peakMemory(of: worker) { #expect(peak < 200 << 10, "kB, \(transfers) transfers") }
      worker.child.kill()
    }
  }

  @Test(arguments: ["all", "memory", "disk"]) func `images that waited are answered`(store: String) async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      let url = origin.url("image/1.png?bytes=40000&cache-control=max-age%3D60")
      let ids = (0..<60).map { number in
        let mode: JSON = number % 2 == 0 ? "default" : "refresh"
        return worker.request(
          "load",
          ["url": .string(url), "deliver": "data", "store": .string(store), "cache": mode, "events": ["cached"]])
      }
      try await worker.child.outputIsFull()
      worker.child.startReading()
      for id in ids { #expect(try await worker.response(to: id)["result"]["bytes"] == 40_000) }
      #expect(try await worker.end() == .exit(0))
    }
  }

  /// In kB; nil where the system does not tell (proc_pid_status(5)).
  private func peakMemory(of worker: WorkerProcess) -> Int? {
    let status = try? String(contentsOfFile: "/proc/\(worker.child.identifier)/status", encoding: .utf8)
    let line = status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }
  }

  @Test func `progress that waits is replaced by newer progress`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      let url = origin.url("image/1.png?bytes=2000000&hold=a")
      let id = worker.request("load", ["url": .string(url), "events": ["progress"]])
      try await origin.held(at: "a")
      try await fillOutput(of: worker)
      try await origin.release("a")
      try await origin.reaches("complete", 1)
      worker.child.startReading()
      #expect(try await worker.response(to: id)["result"]["bytes"] == 2_000_000)
      #expect(worker.events(for: id).count <= 2)
      #expect(try await worker.end() == .exit(0))
    }
  }

  /// Asks for far more than the pipe holds, and waits until it is full. The long ids come back in the answers.
  private func fillOutput(of worker: WorkerProcess) async throws {
    for number in 100_000..<100_600 {
      worker.request("nothing like it", id: .string("\(number)" + String(repeating: "x", count: 244)))
    }
    try await worker.child.outputIsFull()
  }
}

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
      // The pipe holds far less than all the answers, so the worker is blocked long before the last one.
      try await origin.reaches("requests", 100)
      worker.child.startReading()
      for id in ids {
        let response = try await worker.response(to: id)
        #expect(response["result"]["format"] == "png")
      }
      #expect(try await worker.end() == .exit(0))
    }
  }

  @Test func `no transfers start while output is blocked`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      try await fillOutput(of: worker)
      worker.request("load", ["url": .string(origin.url("image/1.png"))], id: "stuck")
      // The load of another worker proves that the origin would have answered meanwhile.
      let other = try WorkerProcess(directory: TemporaryDirectory())
      _ = try await other.load(origin.url("image/2.png"))
      #expect(try await other.end() == .exit(0))
      #expect(try await origin.log("image/1.png").isEmpty)
      worker.child.startReading()
      #expect(try await worker.response(to: "stuck")["result"]["format"] == "png")
      #expect(try await worker.end() == .exit(0))
    }
  }

  /// Each image is a line of 4 MB.
  @Test(arguments: ["all", "memory", "disk"]) func `images are not encoded as lines while output is blocked`(
    store: String
  ) async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--retries", "0"], reads: false)
      let url = origin.url("image/1.png?bytes=3000000&cache-control=max-age%3D60")
      worker.request("load", ["url": .string(url), "deliver": "none", "store": .string(store)])
      try await origin.reaches("complete", 1)
      for _ in 0..<100 {
        worker.request("load", ["url": .string(url), "deliver": "data", "store": .string(store)])
        // Some loads join the transfer, others are served from the cache.
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

  @Test(arguments: ["all", "memory", "disk"]) func `waiting images are answered when the host reads again`(
    store: String
  ) async throws {
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

  /// In kB; nil if the system does not report it (proc_pid_status(5)).
  private func peakMemory(of worker: WorkerProcess) -> Int? {
    let status = try? String(contentsOfFile: "/proc/\(worker.child.identifier)/status", encoding: .utf8)
    let line = status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }
  }

  @Test func `a waiting progress event is replaced by a newer one`() async throws {
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

  /// Requests far more output than the pipe holds, by long ids that the answers echo, and waits until the pipe is full.
  private func fillOutput(of worker: WorkerProcess) async throws {
    for number in 100_000..<100_600 {
      worker.request("nothing like it", id: .string("\(number)" + String(repeating: "x", count: 244)))
    }
    try await worker.child.outputIsFull()
  }
}

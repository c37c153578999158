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

import Foundation
import Testing

/// Runs a test with its own worker. Then closes the worker's input and requires status 0 and complete output lines.
func withWorker(
  _ options: String..., directory: TemporaryDirectory? = nil, environment: [String: String] = [:],
  longLines: Bool = false, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: (WorkerProcess) async throws -> Void
) async throws {
  try await turns.taking {
    let worker = try WorkerProcess(options, directory: directory, environment: environment, longLines: longLines)
    defer { worker.child.kill() }
    try await body(worker)
    if worker.child.ending.value == nil {
      let ending = try await worker.end(sourceLocation: sourceLocation)
      let errors = worker.child.errors.value.text
      #expect(ending == .exit(0), "\(errors)", sourceLocation: sourceLocation)
    }
  }
}

/// Runs a test with its own worker and origin. A failed load is not retried unless the test enables retries.
func withOrigin(
  _ options: String..., origin originOptions: [String] = [], environment: [String: String] = [:],
  longLines: Bool = false, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: (WorkerProcess, OriginProcess) async throws -> Void
) async throws {
  try await turns.taking {
    let origin = try await OriginProcess(originOptions)
    let trust = origin.authority.map { ["SSL_CERT_FILE": $0, "CURL_CA_BUNDLE": $0] } ?? [:]
    let retries = options.contains("--retries") ? [] : ["--retries", "0"]
    let worker = try WorkerProcess(
      options + retries, environment: trust.merging(environment) { $1 }, longLines: longLines)
    defer { worker.child.kill() }
    try await body(worker, origin)
    if worker.child.ending.value == nil {
      let ending = try await worker.end(sourceLocation: sourceLocation)
      let errors = worker.child.errors.value.text
      #expect(ending == .exit(0), "\(errors)", sourceLocation: sourceLocation)
    }
  }
}

/// Runs the worker with these options and empty input, and returns its outcome.
func outcome(of options: [String]) async throws -> (ending: Ending, output: String, errors: String) {
  try await turns.taking {
    let environment = plainEnvironment
    let child = try ChildProcess(try WorkerProcess.binary(), options, environment: environment)
    child.closeInput()
    let ending = try await child.ended()
    _ = try await child.output.until("the end of its output") { $0.isClosed ? true : nil }
    return (ending, child.output.value.text, child.errors.value.text)
  }
}

/// The number of tests that run processes concurrently. All of them at once would only slow each other down.
let turns = Turns(max(2, ProcessInfo.processInfo.activeProcessorCount))

/// A semaphore that admits waiters in order.
actor Turns {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) {
    free = count
  }

  nonisolated func taking<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    await take()
    do {
      let result = try await body()
      await give()
      return result
    } catch {
      await give()
      throw error
    }
  }

  private func take() async {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  private func give() {
    if waiting.isEmpty {
      free += 1
    } else {
      waiting.removeFirst().resume()
    }
  }
}

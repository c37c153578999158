import HTTPTypes
import Testing
import Threads

@testable import HTTPTransport

/// A consumer that records its calls, returns the verdicts of the test, and can be waited for.
final class Recorder: TransferConsumer {
  struct Record: Sendable {
    var redirects: [String] = []
    var heads: [ResponseHead] = []
    var body: [UInt8] = []
    var calls = 0
    var outcomes: [Result<TransferSummary, TransferError>] = []
  }

  private let record = Locked(Record())
  private let onRedirect: @Sendable (String) -> Verdict
  private let onHead: @Sendable (ResponseHead) -> Verdict
  private let onBytes: @Sendable (Record) -> Verdict

  /// - Parameter onBytes: gets the record, with the new bytes included.
  init(
    onHead: @escaping @Sendable (ResponseHead) -> Verdict = { _ in .proceed },
    onBytes: @escaping @Sendable (Record) -> Verdict = { _ in .proceed },
    onRedirect: @escaping @Sendable (String) -> Verdict = { _ in .proceed }
  ) {
    self.onRedirect = onRedirect
    self.onHead = onHead
    self.onBytes = onBytes
  }

  func redirected(to url: String) -> Verdict {
    record.withLock { $0.redirects.append(url) }
    record.notify()
    return onRedirect(url)
  }

  func received(head: ResponseHead) -> Verdict {
    record.withLock { $0.heads.append(head) }
    record.notify()
    return onHead(head)
  }

  func received(bytes: UnsafeRawBufferPointer) -> Verdict {
    let now = record.withLock { record in
      record.body += bytes
      record.calls += 1
      return record
    }
    record.notify()
    return onBytes(now)
  }

  func finished(_ outcome: Result<TransferSummary, TransferError>) {
    record.withLock { $0.outcomes.append(outcome) }
    record.notify()
  }

  var now: Record { record.withLock { $0 } }
  var text: String { String(decoding: now.body, as: UTF8.self) }

  /// Waits until `condition` holds.
  func wait(until condition: @escaping (Record) -> Bool) {
    _ = record.wait { condition($0) ? () : nil }
  }

  /// Waits for the end.
  @discardableResult
  func outcome() -> Result<TransferSummary, TransferError> {
    wait { !$0.outcomes.isEmpty }
    return now.outcomes[0]
  }

  func summary(_ location: SourceLocation = #_sourceLocation) throws -> TransferSummary {
    let outcome = outcome()
    return try #require(try? outcome.get(), "\(outcome)", sourceLocation: location)
  }

  func error(_ location: SourceLocation = #_sourceLocation) throws -> TransferError {
    switch outcome() {
    case .failure(let error): return error
    case .success(let summary):
      let error: TransferError? = nil
      return try #require(error, "succeeded with \(summary.head.status)", sourceLocation: location)
    }
  }
}

extension Transport {
  /// The resolver's statistics after all earlier requests have taken effect.
  nonisolated var resolverNow: ResolverStatistics {
    let answer = Locked<ResolverStatistics?>(nil)
    resolverStatistics { statistics in
      answer.withLock { $0 = statistics ?? ResolverStatistics(kind: .system) }
      answer.notify()
    }
    return answer.wait { $0 }!
  }

  /// A transport that sees only the given environment variables.
  static func forTests(
    environment: [String: String] = [:], _ change: (inout TransportConfiguration) -> Void = { _ in },
    isPermitted: @escaping AddressFilter = { AddressPolicy.isGloballyRoutable($0.bytes) },
    nameServers: NameServerConfiguration = NameServerConfiguration()
  ) -> Transport {
    var configuration = TransportConfiguration(userAgent: "ImageWorker/test")
    change(&configuration)
    return Transport(
      configuration: configuration, environment: { environment[$0] },
      isPermitted: isPermitted, nameServers: nameServers)
  }

  /// Starts a transfer and waits for its end.
  nonisolated func get(
    _ url: String, headers: HeaderFields = [:], _ recorder: Recorder = Recorder(),
    _ change: (inout TransferRequest) -> Void = { _ in }
  ) -> Recorder {
    var request = TransferRequest(url, headers: headers)
    change(&request)
    _ = start(request, consumer: recorder)
    recorder.outcome()
    return recorder
  }
}

extension TransferRequest {
  /// - Parameter url: must be valid.
  init(_ url: String, headers: HeaderFields = [:], validatedURL: String? = nil) {
    self.init(url: try! ResourceURL(url), headers: headers, validatedURL: validatedURL)
  }
}

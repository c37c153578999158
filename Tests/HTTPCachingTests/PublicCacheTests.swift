import Foundation
import HTTPCaching
import HTTPTypes
import Testing

/// Runs the shared part of the public cache-tests suite on the caching rules alone: the origin and the clock are
/// values.
@Suite struct `Public cache tests` {
  /// Searched for in the folder of the package and in each folder above it.
  private static let file = sequence(first: URL(filePath: #filePath)) {
    $0.path == "/" ? nil : $0.deletingLastPathComponent()
  }
  .map { $0.appending(path: "shared/cache-tests/cache-tests-shared.json") }
  .first { FileManager.default.fileExists(atPath: $0.path) }

  @Test(.enabled(if: file != nil, "the shared suites are not beside the package"))
  func `every required and every optimal test of the shared suites holds`() throws {
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: #require(Self.file)))
    let suites = try #require(json as? [[String: Any]])
    var played = 0
    for test in suites.flatMap({ $0["tests"] as? [[String: Any]] ?? [] }) {
      guard let id = test["id"] as? String, let requests = test["requests"] as? [[String: Any]],
        Self.isInScope(test, requests), Self.isAsked(kind: test["kind"] as? String ?? "required", requests)
      else { continue }
      var play = Play(requests)
      #expect(play.complaint() == nil, "\(id)")
      played += 1
    }
    #expect(played > 70)
  }

  /// Only successes are stored, so tests of optimal behaviour for errors are skipped.
  private static func isAsked(kind: String, _ requests: [[String: Any]]) -> Bool {
    let areSuccesses = requests.allSatisfy { request in
      (200...299).contains((request["response_status"] as? [Any])?.first as? Int ?? 200)
    }
    return kind == "required" || (kind == "optimal" && areSuccesses)
  }

  private static func isInScope(_ test: [String: Any], _ requests: [[String: Any]]) -> Bool {
    test["browser_skip"] == nil && test["cdn_only"] == nil
      && requests.allSatisfy {
        $0["request_method"] as? String ?? "GET" == "GET" && $0["interim_responses"] == nil && $0["magic_ims"] == nil
      }
  }
}

/// One test: an origin with scripted answers, a cache with one key, and a clock that advances when the test pauses.
private struct Play {
  private let requests: [[String: Any]]
  private var stored: [CachedResponse] = []
  private var now = 1_795_260_409
  private let policy = CachePolicy(maxAge: 7 * 86_400)

  init(_ requests: [[String: Any]]) { self.requests = requests }

  /// The expectation of the test that fails; nil if all hold.
  mutating func complaint() -> String? {
    for (index, request) in requests.enumerated() {
      let headers = Self.fields(request["request_headers"], now: now)
      let outcome = load(index, headers)
      switch request["expected_type"] as? String {
      case "cached" where outcome.sent != nil: return "request \(index + 1) was sent"
      case "not_cached" where outcome.sent == nil: return "response \(index + 1) came from the cache"
      case "etag_validated" where outcome.sent?["if-none-match"] == nil: return "request \(index + 1) has no tag"
      case "lm_validated" where outcome.sent?["if-modified-since"] == nil: return "request \(index + 1) has no date"
      default: break
      }
      for case let expected as [String] in request["expected_response_headers"] as? [Any] ?? []
      where expected.count == 2 {
        guard !["client-request-count"].contains(expected[0]) else { continue }
        let value = outcome.answer[expected[0].lowercased()]
        if value != expected[1] { return "response \(index + 1): \(expected[0]) is \(value ?? "missing")" }
      }
      for case let expected as [String] in request["expected_request_headers"] as? [Any] ?? [] where expected.count == 2
      {
        if outcome.sent?[expected[0].lowercased()] != expected[1] { return "request \(index + 1) lacks \(expected[0])" }
      }
      if request["pause_after"] as? Bool == true { now += 3 }
    }
    return nil
  }

  /// The request that was sent, if any, and the fields of the answer.
  private mutating func load(_ index: Int, _ headers: HeaderFields) -> (sent: HeaderFields?, answer: HeaderFields) {
    switch policy.decide(mode: .default, requestHeaders: headers, stored: stored, now: now) {
    case .serve(let hit, _): return (nil, Storing.fieldsToServe(stored[hit], now: now))
    case .serveThenRevalidate(let hit, let added):
      let answer = Storing.fieldsToServe(stored[hit], now: now)
      _ = exchange(index, headers, added, asked: hit)
      return (nil, answer)
    case .showThenRevalidate(let hit, _, let added), .revalidate(let hit, let added):
      return exchange(index, headers, added, asked: hit)
    case .fetch(let added): return exchange(index, headers, added, asked: nil)
    case .notCached: return (nil, [:])
    }
  }

  private mutating func exchange(_ index: Int, _ headers: HeaderFields, _ added: HeaderFields, asked: Int?)
    -> (sent: HeaderFields?, answer: HeaderFields)
  {
    let request = requests[index]
    let sent = HeaderFields(headers.lines + added.lines)
    guard request["disconnect"] == nil else { return (sent, [:]) }
    var answer = Self.fields(request["response_headers"], now: now)
    if answer["date"] == nil { answer.append("date", HTTPDate.format(now)) }
    if let asked, (request["expected_type"] as? String)?.hasSuffix("validated") == true {
      let updated = Validation.responsesUpdated(by: answer, in: stored, asked: asked)
      for entry in updated {
        stored[entry].headers = Storing.fields(stored[entry].headers, updatedBy: answer, receivedAt: now)
        (stored[entry].requestTime, stored[entry].responseTime) = (now, now)
      }
      return (sent, updated.first.map { stored[$0].headers } ?? [:])
    }
    let status = (request["response_status"] as? [Any])?.first as? Int ?? 200
    if Storing.mayStore(mode: .default, requestHeaders: headers, status: status, headers: answer) {
      stored.append(
        CachedResponse(
          status: status, headers: Storing.fields(of: answer, receivedAt: now),
          selectingFields: Vary.selectingFields(of: answer, from: headers) ?? [:], requestTime: now,
          responseTime: now))
    }
    return (sent, answer)
  }

  private static func fields(_ list: Any?, now: Int) -> HeaderFields {
    var fields: HeaderFields = [:]
    for case let header as [Any] in list as? [Any] ?? [] {
      guard header.count >= 2, let name = header[0] as? String else { continue }
      let isDate = ["date", "expires", "last-modified"].contains(name.lowercased())
      if isDate, let offset = header[1] as? Int {
        fields.append(name, HTTPDate.format(now + offset))
      } else {
        fields.append(name, "\(header[1])")
      }
    }
    return fields
  }
}

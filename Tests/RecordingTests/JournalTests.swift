import Foundation
import HTTPTransport
import HTTPTypes
import ImageCodec
import LineRPC
import Platform
import Testing
import Threads

@testable import Recording

@Suite struct JournalTests {
  private let start = Instant.now

  private var head: ResponseHead {
    ResponseHead(
      status: 200, headers: HeaderFields([HeaderField("a", "1"), HeaderField("a", "2")]), finalURL: "http://h/",
      httpVersion: "2", contentLength: 7)
  }

  private var times: TransferTimes {
    var times = TransferTimes(startedAt: start + .nanoseconds(4), endedAt: start + .nanoseconds(10))
    (times.name, times.tls, times.redirects) = (.nanoseconds(3), .milliseconds(2), 1)
    (times.requestSentAt, times.firstByteAt) = (start + .nanoseconds(5), start + .nanoseconds(9))
    return times
  }

  private var summary: TransferSummary {
    TransferSummary(head: head, bytesReceived: 7, redirects: 1, times: times, requestTime: 10, responseTime: 11)
  }

  /// Each cause once, with and without what is optional.
  private var causes: [Cause] {
    var error = TransferError(.timeout, "no byte", phase: .idle, bytesReceived: 3)
    (error.redirects, error.times) = (2, TransferTimes(startedAt: start, endedAt: start))
    let path = HostPath(path: "/a", kind: .file, hasParent: true, byteCount: 4, digest: "00")
    return [
      .start, .input([.json(["id": 1], byteCount: 8, [path]), .invalid("no JSON"), .tooLong(limit: 5)]),
      .endOfInput(failed: true), .termination, .work(3), .figures, .advance, .redirect(transfer: 1, "http://h/"),
      .response(transfer: 1, head),
      .body(transfer: 1, count: 7, []), .end(transfer: 1, .success(summary), body: "ff"),
      .end(transfer: 2, .failure(error), body: nil),
      .name(lookUp: 3, NameResolution(.noSuchName, duration: .seconds(1))),
      .decoded(decode: 1, failure: nil, start: start), .decoded(decode: 2, failure: .timedOut, start: nil),
      .decoded(decode: 3, failure: .io("x"), start: start),
    ]
  }

  @Test func `every cause is read as it was written`() throws {
    let coding = JournalCoding(start: start)
    for (number, cause) in causes.enumerated() {
      let moment = Moment(nanoseconds: Int64(number), unixTime: 100 + number)
      let line = coding.json(cause, at: moment)
      let members = try Members(parsed(String(decoding: JournalWriter.line(line), as: UTF8.self)))
      #expect(try coding.moment(members) == moment)
      #expect(coding.json(try coding.cause(members), at: moment) == line)
    }
  }

  @Test func `errors of an image are decoded again, those of a machine are repeated`() {
    let ofMachine: [DecodeError] = [.crashed, .timedOut, .cancelled, .outOfMemory("a"), .io("b"), .unavailable("c")]
    for error in ofMachine { #expect(MachineFailure(error)?.error == error) }
    for error in [DecodeError.corrupt("a"), .unsupportedFormat("b"), .tooManyPixels("c"), .cropOutside("d")] {
      #expect(MachineFailure(error) == nil)
    }
  }

  @Test func `a journal is read as it was written, with the bodies`() throws {
    let directory = NSTemporaryDirectory() + "/recording-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let files = RecordingFiles(directory: try RecordingDirectory(creating: directory).path)
    let header = Header(
      version: "1", seed: 42, options: ["header": ["Cookie: secret"]], processors: 2, descriptors: .max,
      redactsQueries: true)
    let writer = try JournalWriter(
      files, header: header, coding: JournalCoding(start: start),
      paths: WorkerPaths(cache: "/c", scratch: "/s", pixels: "/p"), onFailure: { Issue.record("\($0)") })
    let request = TransferRequest(url: try ResourceURL("http://u:p@h/?a=b"))
    let entries: [JournalWriter.Entry] = [
      .cause(.start, Moment(nanoseconds: 0, unixTime: 1)), .effect(.transfer(1, request)),
      .effect(.observed([false, true])), .cause(.response(transfer: 1, head), Moment(nanoseconds: 1, unixTime: 1)),
      .cause(.body(transfer: 1, count: 2, [1, 2]), Moment(nanoseconds: 2, unixTime: 1)),
      .cause(.body(transfer: 1, count: 1, [3]), Moment(nanoseconds: 3, unixTime: 1)),
      .cause(.end(transfer: 1, .success(summary), body: nil), Moment(nanoseconds: 4, unixTime: 2)),
      .effect(.sent(Array("{\"result\":{\"data\":\"AQID\"}}\n".utf8))), .effect(.exit(0)),
    ]
    for entry in entries { writer.add(entry, byteCount: 1) }
    writer.finish()
    let recording = try Recording(in: directory)
    #expect((recording.causeCount, recording.sentCount, recording.isIncomplete) == (5, 1, false))
    #expect((recording.header.seed, recording.header.descriptors) == (42, .max))
    #expect(recording.header.options == ["header": ["Cookie: redacted-1"]])
    let body = try #require(recording.bodies[1])
    #expect(try Data(contentsOf: URL(fileURLWithPath: body)) == Data([1, 2, 3]))
    let reader = try JournalReader(files.journal, start: start)
    let first = try #require(try reader.nextGroup())
    #expect(first.observed == [false, true])
    #expect(
      first.effects.map(\.json)
        == [["transfer": 1, "url": "http://redacted-2@h/?a=redacted-3", "headers": []]])
    var last = first
    while let group = try reader.nextGroup() { last = group }
    let digest = "sha256-6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090"
    #expect(last.effects.map(\.json).count == 2)
    #expect(last.effects[0].json != ["sent": ["result": ["data": "AQID"]]])
    #expect(last.effects[0].json != ["sent": ["result": ["data": .string(digest)]]], "the digest is that of the base64")
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(JSONObject(distinct: elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
  }
}

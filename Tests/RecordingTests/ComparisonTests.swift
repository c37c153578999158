import LineRPC
import Testing

@testable import Recording

@Suite struct ComparisonTests {
  @Test(arguments: [
    (#"{"a":{"b":[1,2]}}"#, #"{"a":{"b":[1,2]}}"#, nil), (#"{"a":{"b":[1,2]}}"#, #"{"a":{"b":[1,3]}}"#, "a.b[1]"),
    (#"{"a":[1]}"#, #"{"a":[1,2]}"#, "a[1]"), (#"{"a":1}"#, #"{}"#, "a"), (#"{}"#, #"{"a":1}"#, "a"),
    (#"{"a":1}"#, #"{"a":"1"}"#, "a"), (#"{"a":{"pid":1,"rssBytes":2}}"#, #"{"a":{"pid":3,"rssBytes":4}}"#, nil),
    (#"{"sandbox":["a"]}"#, #"{}"#, nil),
  ])
  func `the first member that differs is found, and those of the machine are not compared`(
    recorded: String, replayed: String, path: String?
  ) throws {
    #expect(EffectComparison.difference(try parsed(recorded), try parsed(replayed)) == path)
  }

  @Test func `the paths of a host in a request or a batch are found and replaced`() throws {
    let line = try parsed(
      #"[{"method":"store","params":{"path":"/a"}},{"method":"load","params":{"saveTo":"/b","path":"/c"}},7]"#)
    #expect(RequestPaths.all(in: line).map(\.text) == ["/a", "/b"])
    #expect(RequestPaths.all(in: line).map(\.isContent) == [true, false])
    let moved = RequestPaths.replacing(in: line) { "/x" + $0.text }
    #expect(RequestPaths.all(in: moved).map(\.text) == ["/x/a", "/x/b"])
  }
}

@Suite struct EffectCheckTests {
  private let group = JournalGroup(
    cause: .advance, moment: Moment(nanoseconds: 0, unixTime: 0), line: 5,
    effects: [(6, ["sent": 1]), (7, ["exit": 0])], observed: [false, true])

  @Test func `effects are compared in their order`() throws {
    var (check, mask) = (EffectCheck(group), AnswerMask())
    #expect(try #require(check.missing).message.contains("line 6"))
    guard case .same = check.compare(["sent": 1], &mask) else { throw Unexpected() }
    guard case .different(let difference) = check.compare(["exit": 1], &mask) else { throw Unexpected() }
    #expect(difference.message.contains("line 7 of the journal: exit differs"))
    #expect(check.missing == nil)
    guard case .unrecorded = check.compare(["sent": 2], &mask) else { throw Unexpected() }
  }

  @Test func `results of metrics are not compared, and later answers with the same id are`() throws {
    var mask = AnswerMask()
    mask.note(try parsed(#"[{"id":1,"method":"metrics"},{"id":"b","method":"stats"}]"#))
    func difference(_ one: String, _ other: String) throws -> String? {
      let (one, other) = mask.hide(in: try parsed(one), try parsed(other))
      return EffectComparison.difference(one, other)
    }
    #expect(try difference(#"{"sent":{"id":"b","result":1}}"#, #"{"sent":{"id":"b","result":2}}"#) == "sent.result")
    #expect(try difference(#"{"sent":{"id":1,"result":1}}"#, #"{"sent":{"id":1,"error":2}}"#) == "sent.result")
    mask.note(try parsed(#"{"id":1,"method":"trace"}"#))
    #expect(try difference(#"{"sent":[{"id":1,"result":1}]}"#, #"{"sent":[{"id":1,"result":2}]}"#) == nil)
    #expect(try difference(#"{"sent":{"id":1,"result":1}}"#, #"{"sent":{"id":1,"result":2}}"#) == "sent.result")
  }

  @Test func `observed values are repeated, and false follows`() {
    var check = EffectCheck(group)
    #expect((0..<4).map { _ in check.observed() } == [false, true, false, false])
  }

  private struct Unexpected: Error {}
}

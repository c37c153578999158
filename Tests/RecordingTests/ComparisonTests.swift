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

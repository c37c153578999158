import Testing

@testable import HTTPTransport

/// Whether curl is asked for the rest of a header over HTTP/2.
@Suite struct HTTP2HeadTests {
  private func expect(_ mayHaveMore: Bool, is expected: Bool, _ location: SourceLocation = #_sourceLocation) {
    #expect(mayHaveMore == expected, sourceLocation: location)
  }

  @Test func `a header in one piece costs no other call`() {
    var head = HTTP2Head()
    head.inputs += 3
    expect(head.mayHaveMore(isComplete: true), is: false)
  }

  @Test func `one in parts is asked for until a call brings nothing`() {
    var head = HTTP2Head()
    for _ in 0..<5 {
      head.inputs += 1
      expect(head.mayHaveMore(isComplete: false), is: true)
    }
    head.inputs += 1
    expect(head.mayHaveMore(isComplete: true), is: true)
    expect(head.mayHaveMore(isComplete: true), is: false)
    head.inputs += 1
    expect(head.mayHaveMore(isComplete: true), is: true)
  }
}

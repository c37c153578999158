import LineRPC
import Testing

@testable import Recording

@Suite struct RedactionTests {
  /// A line before and after the redaction, without and with `--record-redact-query`.
  @Test(arguments: [
    (#"{"url":"http://user:pw@h/a"}"#, #"{"url":"http://redacted-1@h/a"}"#),
    (#"{"url":"http://user:p@w@h/a@b"}"#, #"{"url":"http://redacted-1@h/a@b"}"#),
    (#"{"url":"http://h/a?b=c"}"#, #"{"url":"http://h/a?b=c"}"#),
    (
      #"{"urls":["http://u@h/",{"url":"http://u@h/"}]}"#,
      #"{"urls":["http://redacted-1@h/",{"url":"http://redacted-1@h/"}]}"#
    ),
    (
      #"{"message":"cannot load http://u:p@h/a, sorry a@b"}"#,
      #"{"message":"cannot load http://redacted-1@h/a, sorry a@b"}"#
    ),
    (#"{"url":"ftp://u:p w@h/a"}"#, #"{"url":"ftp://redacted-1@h/a"}"#),
    (#"{"url":"data:image/png;base64,a://b@c"}"#, #"{"url":"data:image/png;base64,a://b@c"}"#),
    (#"{"headers":{"Accept":"a","X-Mine":"b"}}"#, #"{"headers":{"Accept":"a","X-Mine":"redacted-1"}}"#),
    (
      #"{"headers":[["range","a"],["authorization","b"]]}"#,
      #"{"headers":[["range","a"],["authorization","redacted-1"]]}"#
    ),
    (#"{"header":["Accept: a","X-Mine:  b","Cookie;"]}"#, #"{"header":["Accept: a","X-Mine:  redacted-1","Cookie;"]}"#),
    (
      #"{"headers":{"x-a":"a\u0001b","x-b":7,"x-c":null,"x-d":""}}"#,
      #"{"headers":{"x-a":"redacted-1\n","x-b":0,"x-c":null,"x-d":""}}"#
    ),
    (
      #"{"response":{"headers":{"etag":"a","set-cookie":["b","c"],"x-auth-token":"b"}}}"#,
      #"{"response":{"headers":{"etag":"a","set-cookie":["redacted-1","redacted-2"],"x-auth-token":"redacted-1"}}}"#
    ),
    (
      #"{"responseHeaders":[["location","http://u@h/?a"],["x-mine","b"]]}"#,
      #"{"responseHeaders":[["location","http://redacted-1@h/?a"],["x-mine","b"]]}"#
    ),
    (#"{"proxy":"user:pw@h:1"}"#, #"{"proxy":"redacted-1@h:1"}"#),
    (
      #"{"params":{"Authorization":{"a":["b",1]},"key":"k","slot":"s"}}"#,
      #"{"params":{"Authorization":{"a":["redacted-1",0]},"key":"k","slot":"s"}}"#
    ),
  ])
  func `a line loses its secrets and nothing else`(before: String, after: String) throws {
    #expect(try redacted(before, redactsQueries: false) == parsed(after))
  }

  @Test(arguments: [
    (
      #"{"url":"http://h/a?b=c&d=&e&f=c#g"}"#,
      #"{"url":"http://h/a?b=redacted-1&d=&redacted-2&f=redacted-1#redacted-3"}"#
    ),
    (#"{"url":"http://h/a b?c d=e f"}"#, #"{"url":"http://h/a b?c d=redacted-1"}"#),
    (#"{"url":"http://u@h?a"}"#, #"{"url":"http://redacted-1@h?redacted-2"}"#),
    (#"{"message":"see <http://h/?a> there?"}"#, #"{"message":"see <http://h/?redacted-1> there?"}"#),
    (
      #"{"responseHeaders":[["location","/a?b=c"],["x-mine","/a?b"]]}"#,
      #"{"responseHeaders":[["location","/a?b=redacted-1"],["x-mine","/a?b"]]}"#
    ),
    (#"{"key":"a?b=c"}"#, #"{"key":"a?b=c"}"#),
  ])
  func `query strings lose their values if that is asked`(before: String, after: String) throws {
    #expect(try redacted(before, redactsQueries: true) == parsed(after))
  }

  @Test func `what was redacted stays as it is`() throws {
    let line = #"{"url":"http://u:p@h/a?b=c#d","headers":{"cookie":"e"},"header":["x: f"],"proxy":"g@h"}"#
    var redactor = Redactor(redactsQueries: true)
    let once = redactor.redact(try parsed(line))
    var other = Redactor(redactsQueries: true)
    #expect(other.redact(once) == once)
  }

  private func redacted(_ text: String, redactsQueries: Bool) throws -> JSON {
    var redactor = Redactor(redactsQueries: redactsQueries)
    return redactor.redact(try parsed(text))
  }
}

func parsed(_ text: String) throws -> JSON { try JSON(parsing: Array(text.utf8)) }

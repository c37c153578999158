import HTTPTypes
import ImageStore
import LineRPC
import Testing

@testable import Worker

@Suite struct ArchivedResponseTests {
  private let now = 1_700_000_000

  private var response: StoredResponse {
    StoredResponse(
      key: "https://h/a?b\nc", url: "https://h/a", finalURL: "https://h/é", status: 203,
      headers: ["etag": "\"x\"", "set-cookie": "a=b", "x": "ü\t1"], varyingHeaders: ["accept": "image/*"],
      requestTime: now - 20, responseTime: now - 10, storedAt: now - 10, validatedAt: now - 5, expiresAt: now + 100,
      mediaType: "image/png", format: "png", byteCount: 5, digest: [UInt8](repeating: 171, count: 32),
      metadata: DecodeMetadata(
        placeholder: .init(thumbHash: [1, 2, 3, 4, 5], color: 0xFF_0080), isChecked: true, isDamaged: true))
  }

  private func read(_ response: StoredResponse, now: Int? = nil) throws -> StoredResponse {
    let description = ArchivedResponse.description(of: response, withCredentials: true)
    return try ArchivedResponse.draft(from: description, now: now ?? self.now)
  }

  @Test func `a response is read as it was written`() throws {
    #expect(try read(response) == response)
    var variant = response
    variant.variant = "v3,w=5"
    variant.partition = String(repeating: "0a", count: 32)
    variant.finalURL = nil
    variant.metadata = DecodeMetadata(
      source: .init(digest: [UInt8](repeating: 1, count: 32), byteCount: 9, format: "jpeg", width: 3, height: nil))
    #expect(try read(variant) == variant)
  }

  @Test func `fields that set cookies are written only with credentials`() throws {
    let description = ArchivedResponse.description(of: response, withCredentials: false)
    var expected = response
    expected.headers.remove("set-cookie")
    #expect(try ArchivedResponse.draft(from: description, now: now) == expected)
  }

  @Test func `times after now are moved to now, and the others with them`() throws {
    let read = try read(response, now: now - 1000)
    #expect((read.requestTime, read.responseTime) == (now - 1010, now - 1000))
    #expect((read.storedAt, read.validatedAt, read.expiresAt) == (now - 1000, now - 1000, now - 890))
  }

  @Test func `extreme times are limited`() throws {
    var extreme = response
    extreme.expiresAt = .max
    #expect(try read(extreme).expiresAt == 1 << 50)
    extreme.expiresAt = .min
    #expect(try read(extreme).expiresAt == -(1 << 50))
  }
}

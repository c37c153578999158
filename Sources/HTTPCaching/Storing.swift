public import HTTPTypes

/// Decides which responses and which of their fields are stored (RFC 9111 section 3).
public enum Storing {
  /// Whether a private cache may store the answer to a GET: only complete successes, and only if neither side forbids
  /// it.
  public static func mayStore(
    mode: CacheMode, requestHeaders: HeaderFields, status: Int, headers: HeaderFields
  ) -> Bool {
    let request = RequestDirectives(requestHeaders)
    guard request.effectiveMode(mode) != .noStore, !request.hasRange, !request.control.noStore else { return false }
    guard mayKeep(headers) else { return false }
    guard (200...299).contains(status), status != 206,
      Vary.selectingFields(of: headers, from: requestHeaders) != nil
    else { return false }
    let control = CacheControl(headers.values(of: "cache-control"))
    let isUnderstood = understood.contains(status)
    if control.mustUnderstand {
      guard isUnderstood else { return false }
    } else if control.noStore {
      return false
    }
    return isHeuristicallyCacheable(status) || control.isPublic || control.isPrivate || control.maxAge != nil
      || headers["expires"] != nil
  }

  /// Whether a request with these headers is for the whole resource. An error in answer to a range or to the host's own
  /// conditions says nothing about the resource.
  public static func isForWhole(requestHeaders: HeaderFields) -> Bool { RequestDirectives(requestHeaders).areForWhole }

  /// The fields to store: without those about the connection (section 3.1), and with a Date, which is the time of
  /// arrival if the server sent none (RFC 9110 section 6.6.1). At most `maxBytes` of them; those that caching needs
  /// take precedence.
  public static func fields(of headers: HeaderFields, receivedAt: Int) -> HeaderFields {
    // Nearly every answer has one of these two, which name no field.
    let named = headers.values(of: "connection").filter { $0 != "keep-alive" && $0 != "close" }.flatMap(Vary.members)
    var kept: [HeaderField] = []
    kept.reserveCapacity(headers.lines.count + 1)
    for line in headers.lines where !isAlwaysOfConnection(line.name) && !named.contains(line.name) {
      kept.append(line)
    }
    if !kept.contains(where: { $0.name == "date" }) { kept.append(HeaderField("date", HTTPDate.format(receivedAt))) }
    return limited(HeaderFields(kept))
  }

  /// Removes lines beyond `maxBytes`. A line that does not fit is skipped, so that shorter ones after it may stay.
  private static func limited(_ fields: HeaderFields) -> HeaderFields {
    guard fields.byteCount > maxBytes else { return fields }
    var bytesLeft = maxBytes - byteCountForCache(fields)
    return HeaderFields(
      fields.lines.filter { line in
        if forCache.contains(line.name) { return true }
        guard line.byteCount <= bytesLeft else { return false }
        bytesLeft -= line.byteCount
        return true
      })
  }

  /// Whether the fields that caching needs are within `maxBytes`.
  static func mayKeep(_ headers: HeaderFields) -> Bool {
    headers.byteCount <= maxBytes || byteCountForCache(headers) <= maxBytes
  }

  private static func byteCountForCache(_ headers: HeaderFields) -> Int {
    headers.lines.reduce(0) { forCache.contains($1.name) ? $0 + $1.byteCount : $0 }
  }

  /// The stored fields updated by a 304 (section 3.2): each of its fields replaces all of the same name, except those
  /// that describe the stored bytes. A stored Age is dropped, since it is about an earlier time.
  public static func fields(_ stored: HeaderFields, updatedBy notModified: HeaderFields, receivedAt: Int)
    -> HeaderFields
  {
    let update = fields(of: notModified, receivedAt: receivedAt).lines.filter { !ofStoredBytes.contains($0.name) }
    let names = Set(update.map(\.name)).union(["age"])
    return limited(HeaderFields(stored.lines.filter { !names.contains($0.name) } + update))
  }

  /// The fields for a response that was served from the cache without a new validation: the stored ones with its Age
  /// (section 5.1).
  public static func fieldsToServe(_ response: CachedResponse, now: Int) -> HeaderFields {
    var fields = response.headers
    fields["age"] = "\(Freshness(of: response, maxAge: 0).age(at: now))"
    return fields
  }

  /// The status codes of RFC 9110 section 15.1 that count as results here.
  static func isHeuristicallyCacheable(_ status: Int) -> Bool { status == 200 || status == 203 || status == 204 }

  /// Status codes whose meaning for caching is known (section 5.2.2.3).
  private static let understood: Set = [200, 201, 202, 203, 204, 205]

  /// Largest stored header, in bytes of names and values. Real headers have 1 or 2 kB.
  static let maxBytes = 16 << 10

  /// The fields that caching needs: all of them are stored, or the response is not.
  private static let forCache: Set = [
    "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "pragma", "vary",
  ]

  /// Fields that describe the bytes on the wire. The body is stored decoded and in full.
  private static let ofStoredBytes: Set = ["content-encoding", "content-length", "content-range"]

  private static let ofProxies: Set = [
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection",
  ]

  /// Decides by the first letter for most names, since it is called for each field of each answer.
  private static func isAlwaysOfConnection(_ name: String) -> Bool {
    switch name.utf8.first {
    case UInt8(ascii: "c"): name == "connection"
    case UInt8(ascii: "k"): name == "keep-alive"
    case UInt8(ascii: "p"): ofProxies.contains(name)
    case UInt8(ascii: "t"): name == "te" || name == "trailer" || name == "transfer-encoding"
    case UInt8(ascii: "u"): name == "upgrade"
    default: false
    }
  }
}

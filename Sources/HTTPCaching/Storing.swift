public import HTTPTypes

/// What of an answer is kept (RFC 9111 section 3).
public enum Storing {
  /// Whether the answer to a GET may be stored by a private cache: complete successes only, and nothing that either
  /// side forbids.
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

  /// Whether a request with these headers is for all of what is there. An error in answer to one for a part, or on a
  /// condition of the host's own, says nothing of the resource.
  public static func isForWhole(requestHeaders: HeaderFields) -> Bool { RequestDirectives(requestHeaders).areForWhole }

  /// The fields to keep: without those that speak of the connection (section 3.1), and with a Date, which is the time
  /// at which the answer came where the server sent none (RFC 9110 section 6.6.1). At most `mostBytes` of them, those
  /// that caching goes by before all others.
  public static func fields(of headers: HeaderFields, receivedAt: Int) -> HeaderFields {
    let named = Set(headers.values(of: "connection").flatMap(Vary.members))
    var kept: [HeaderField] = []
    kept.reserveCapacity(headers.lines.count + 1)
    for line in headers.lines where !isAlwaysOfConnection(line.name) && !named.contains(line.name) {
      kept.append(line)
    }
    if !kept.contains(where: { $0.name == "date" }) { kept.append(HeaderField("date", HTTPDate.format(receivedAt))) }
    return cut(HeaderFields(kept))
  }

  /// Without what is too much. A line that does not fit is left out, so that shorter ones behind it may stay.
  private static func cut(_ fields: HeaderFields) -> HeaderFields {
    guard fields.byteCount > mostBytes else { return fields }
    var room = mostBytes - byteCountForCache(fields)
    return HeaderFields(
      fields.lines.filter { line in
        if forCache.contains(line.name) { return true }
        guard line.byteCount <= room else { return false }
        room -= line.byteCount
        return true
      })
  }

  /// Whether what caching goes by is little enough to be kept.
  static func mayKeep(_ headers: HeaderFields) -> Bool {
    headers.byteCount <= mostBytes || byteCountForCache(headers) <= mostBytes
  }

  private static func byteCountForCache(_ headers: HeaderFields) -> Int {
    headers.lines.reduce(0) { forCache.contains($1.name) ? $0 + $1.byteCount : $0 }
  }

  /// The stored fields once a 304 has confirmed them (section 3.2): each field that it has replaces all of that name,
  /// but those that describe the stored bytes. An Age of old says nothing of the new moment.
  public static func fields(_ stored: HeaderFields, updatedBy notModified: HeaderFields, receivedAt: Int)
    -> HeaderFields
  {
    let update = fields(of: notModified, receivedAt: receivedAt).lines.filter { !ofStoredBytes.contains($0.name) }
    let names = Set(update.map(\.name)).union(["age"])
    return cut(HeaderFields(stored.lines.filter { !names.contains($0.name) } + update))
  }

  /// The fields as they go to the host with a response that was not just fetched or validated: with its Age (section
  /// 5.1).
  public static func fieldsToServe(_ response: CachedResponse, now: Int) -> HeaderFields {
    var fields = response.headers
    fields["age"] = "\(Freshness(of: response, maxAge: 0).age(at: now))"
    return fields
  }

  /// Those of RFC 9110 section 15.1 that count as results here.
  static func isHeuristicallyCacheable(_ status: Int) -> Bool { status == 200 || status == 203 || status == 204 }

  /// Codes whose meaning for caching is known (section 5.2.2.3).
  private static let understood: Set = [200, 201, 202, 203, 204, 205]

  /// How much of a header is kept, in bytes of names and values. Real ones have 1 or 2 kB.
  static let mostBytes = 16 << 10

  /// What caching goes by: it stays, or nothing is stored.
  private static let forCache: Set = [
    "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "pragma", "vary",
  ]

  /// The body is kept decoded and in full.
  private static let ofStoredBytes: Set = ["content-encoding", "content-length", "content-range"]

  private static let ofProxies: Set = [
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection",
  ]

  /// Each field of each answer is asked about, so that the first letter decides for most.
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

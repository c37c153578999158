internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Text

/// The description of an entry in an archive: the properties of its row in the index that are of use in another cache.
enum ArchivedResponse {
  /// Times are Unix seconds within these bounds, so that no sum overflows.
  private static let times: ClosedRange<Int64> = -(1 << 50)...(1 << 50)
  private static let counts: ClosedRange<Int64> = 0...(1 << 50)

  // MARK: Writing

  /// - Parameter withCredentials: whether header fields that set cookies are included.
  static func description(of response: StoredResponse, withCredentials: Bool) -> [UInt8] {
    var writer = JSONWriter(capacity: 2048)
    writer.object { writer in
      writer.member("key", response.key)
      writer.member("url", response.url)
      if let finalURL = response.finalURL { writer.member("finalUrl", finalURL) }
      if !response.partition.isEmpty { writer.member("partition", response.partition) }
      if !response.variant.isEmpty { writer.member("variant", response.variant) }
      writer.member("status", response.status)
      writer.fields("headers", response.headers) { withCredentials || !setCookie.contains($0.name) }
      if !response.varyingHeaders.isEmpty { writer.fields("varying", response.varyingHeaders) { _ in true } }
      for (name, time) in [
        ("requestTime", response.requestTime), ("responseTime", response.responseTime),
        ("storedAt", response.storedAt), ("validatedAt", response.validatedAt), ("expiresAt", response.expiresAt),
      ] as [(StaticString, Int)] {
        writer.member(name, min(max(Int64(time), times.lowerBound), times.upperBound))
      }
      writer.member("mediaType", response.mediaType)
      if let format = response.format { writer.member("format", format) }
      writer.member("bytes", response.byteCount)
      writer.member("digest", response.digest.hexadecimal)
      if let metadata = response.metadata { writer.object("decoded") { $0.members(of: metadata) } }
    }
    return writer.line()
  }

  private static let setCookie: Set = ["set-cookie", "set-cookie2"]

  // MARK: Reading

  /// The response as a draft to be stored. Nothing of it is trusted to be of any size or form; the digest and the format
  /// must still be compared with the image.
  ///
  /// - Parameter now: times in the future, from a clock that is ahead, are moved to it.
  static func draft(from bytes: [UInt8], now: Int) throws(ArchiveError) -> StoredResponse {
    let object: JSONObject
    do throws(JSONError) {
      guard case .object(let parsed) = try JSON(parsing: bytes) else {
        throw JSONError(reason: "it is not an object", offset: 0)
      }
      object = parsed
    } catch {
      throw ArchiveError("its description is not JSON: \(error.reason)")
    }
    do throws(RPCError) {
      return try draft(from: object, now: now)
    } catch {
      throw ArchiveError("its description is invalid: \(error.message)")
    }
  }

  private static let members = [
    "key", "url", "finalUrl", "partition", "variant", "status", "headers", "varying", "requestTime", "responseTime",
    "storedAt", "validatedAt", "expiresAt", "mediaType", "format", "bytes", "digest", "decoded",
  ]

  private static func draft(from object: JSONObject, now: Int) throws(RPCError) -> StoredResponse {
    let params = try Parameters(object, known: members)
    func time(_ name: String) throws(RPCError) -> Int {
      Int(try params.required(name, params.integer(name, in: times)))
    }
    let (requested, responded) = (try time("requestTime"), try time("responseTime"))
    let ahead = max(0, responded - now)
    var response = StoredResponse(
      key: try params.required("key", params.nonempty("key")), url: try params.required("url", params.string("url")),
      requestTime: min(requested, responded) - ahead, responseTime: responded - ahead,
      storedAt: min(try time("storedAt") - ahead, now), validatedAt: min(try time("validatedAt") - ahead, now),
      expiresAt: try time("expiresAt") - ahead, mediaType: try params.required("mediaType", params.string("mediaType")))
    response.finalURL = try params.nonempty("finalUrl")
    response.partition = try params.digest("partition")?.hexadecimal ?? ""
    response.status = Int(try params.required("status", params.integer("status", in: 200...299)))
    response.headers = try params.required("headers", params.fields("headers"))
    response.varyingHeaders = try params.fields("varying") ?? [:]
    response.format = try params.choice("format", ImageFormat.self)?.rawValue
    response.byteCount = try params.required("bytes", params.integer("bytes", in: counts))
    response.digest = try params.required("digest", params.digest("digest"))
    let known = ["checked", "damaged", "placeholder", "source"]
    response.metadata = try params.object("decoded", known: known).map { params throws(RPCError) in
      try params.metadata(counts: counts)
    }
    response.variant = try params.string("variant") ?? ""
    guard response.variant.isEmpty || Transform(canonical: response.variant) != nil else {
      throw .invalidParams(member: "variant", "variant must be a canonical transform of this version")
    }
    guard response.variant.isEmpty == (response.metadata?.source == nil) else {
      throw .invalidParams(member: "decoded.source", "decoded.source must be given for a variant, and only then")
    }
    return response
  }
}

extension JSONWriter {
  fileprivate mutating func fields(
    _ name: StaticString, _ fields: HeaderFields, where isIncluded: (HeaderField) -> Bool
  ) {
    array(name) { writer in
      for line in fields.lines where isIncluded(line) {
        writer.beginArray()
        writer.value(line.name)
        writer.value(line.value)
        writer.endArray()
      }
    }
  }

  fileprivate mutating func members(of metadata: DecodeMetadata) {
    if metadata.isChecked { member("checked", true) }
    if metadata.isDamaged { member("damaged", true) }
    if let placeholder = metadata.placeholder {
      object("placeholder") { writer in
        writer.member("thumbHash", base64: placeholder.thumbHash)
        writer.member("color", Int(placeholder.color))
      }
    }
    if let source = metadata.source {
      object("source") { writer in
        writer.member("digest", source.digest.hexadecimal)
        writer.member("bytes", source.byteCount)
        writer.member("format", source.format)
        if let width = source.width { writer.member("width", width) }
        if let height = source.height { writer.member("height", height) }
      }
    }
  }
}

extension Parameters {
  fileprivate func required<Value>(_ name: String, _ value: Value?) throws(RPCError) -> Value {
    guard let value else { throw .invalidParams(member: path(name), "\(path(name)) must be given") }
    return value
  }

  /// A text that is not empty.
  fileprivate func nonempty(_ name: String) throws(RPCError) -> String? {
    guard let text = try string(name) else { return nil }
    if text.isEmpty { throw .invalidParams(member: path(name), "\(path(name)) must not be empty") }
    return text
  }

  /// A SHA-256.
  fileprivate func digest(_ name: String) throws(RPCError) -> [UInt8]? {
    guard let text = try string(name) else { return nil }
    guard let digest = [UInt8](hexadecimal: text[...]), digest.count == 32 else {
      throw .invalidParams(member: path(name), "\(path(name)) must be 64 hexadecimal digits")
    }
    return digest
  }

  fileprivate func fields(_ name: String) throws(RPCError) -> HeaderFields? {
    guard let value = value(name) else { return nil }
    let problem = RPCError.invalidParams(
      member: path(name), "\(path(name)) must be a list of pairs of a header field's name and its value")
    guard case .array(let elements) = value else { throw problem }
    var fields = HeaderFields()
    for element in elements {
      guard case .array(let pair) = element, pair.count == 2, case .string(let name) = pair[0],
        case .string(let value) = pair[1], !name.isEmpty, name.utf8.allSatisfy(Self.isTokenCharacter),
        value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
      else { throw problem }
      fields.append(name, value)
    }
    return fields
  }

  /// RFC 9110 section 5.6.2.
  private static let isTokenCharacter: @Sendable (UInt8) -> Bool = { byte in
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  fileprivate func metadata(counts: ClosedRange<Int64>) throws(RPCError) -> DecodeMetadata {
    let placeholder = try object("placeholder", known: ["thumbHash", "color"])
    let source = try object("source", known: ["digest", "bytes", "format", "width", "height"])
    return DecodeMetadata(
      source: try source.map { params throws(RPCError) in try params.source(counts: counts) },
      placeholder: try placeholder.map { params throws(RPCError) in try params.placeholder() },
      isChecked: try flag("checked") ?? false, isDamaged: try flag("damaged") ?? false)
  }

  private func source(counts: ClosedRange<Int64>) throws(RPCError) -> DecodeMetadata.Source {
    DecodeMetadata.Source(
      digest: try required("digest", digest("digest")),
      byteCount: try required("bytes", integer("bytes", in: counts)),
      format: try required("format", choice("format", ImageFormat.self)).rawValue,
      width: try integer("width", in: 1...(1 << 32)).map { Int($0) },
      height: try integer("height", in: 1...(1 << 32)).map { Int($0) })
  }

  private func placeholder() throws(RPCError) -> DecodeMetadata.Placeholder {
    guard let hash = Base64.decode(try string("thumbHash") ?? ""), 5...64 ~= hash.count else {
      throw .invalidParams(member: path("thumbHash"), "\(path("thumbHash")) must be a ThumbHash in base64")
    }
    return DecodeMetadata.Placeholder(
      thumbHash: hash, color: UInt32(try required("color", integer("color", in: 0...0xFF_FFFF))))
  }
}

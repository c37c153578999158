internal import HTTPTypes
internal import ImageStore
internal import Loading

/// The defaults that the options define for every load, computed once.
///
/// A class, so that a load does not copy it.
final class LoadDefaults: Sendable {
  let fields: LoadHeaders
  let events: LoadRequest.Events
  let timeout: Duration
  /// Nil for no deadline.
  let deadline: Duration?
  let retries: Int
  let maxBytes: Int64
  /// The query parameters that are not part of the cache key.
  let ignoredQuery: QueryNameFilter
  /// The folder below which files of the host must be; nil for any place.
  let files: PermittedFolder?

  init(_ options: Options) {
    // The digest covers the whole file, because redirects can lead to any host.
    let cookies = options.cookieFile.map { SHA256.digest(of: Array($0.utf8)).hexadecimal }
    fields = LoadHeaders(options.requestHeaders, alsoSent: cookies ?? "")
    events = EventNames.events(options.events)
    timeout = options.timeout.limit
    deadline = options.deadline == .zero ? nil : options.deadline
    retries = options.retries
    maxBytes = options.maxBytes
    files = options.permittedFolder
    ignoredQuery = QueryNameFilter(options.keyIgnoredQuery)
  }

  /// A request with these defaults.
  func request(url: String, source: LoadRequest.Source, key: String) -> LoadRequest {
    var request = LoadRequest(url: url, source: source, key: key, fields: fields)
    request.events = events
    request.timeout = timeout
    request.deadline = deadline
    request.retries = retries
    request.maxBytes = maxBytes
    return request
  }

  /// The header fields of a request that replaces defaults of the same names by these.
  func fields(with own: HeaderFields) -> LoadHeaders {
    own.isEmpty ? fields : LoadHeaders(fields.all.replacing(own), own: own, alsoSent: fields.alsoSent)
  }
}

extension Options {
  /// The options with the folder of `--files`, which must exist.
  func findingFiles() throws(ExitError) -> Options {
    guard let files else { return self }
    var options = self
    do throws(StoreError) {
      options.permittedFolder = try PermittedFolder(CacheDirectory.absolute(files))
    } catch {
      throw ExitError(status: ExitStatus.noFiles, message: "the folder of --files cannot be used: \(error.message)")
    }
    return options
  }

  /// The options with the content of the cookie file. The file is not read again.
  func readingCookies() throws(ExitError) -> Options {
    guard let cookies else { return self }
    var options = self
    let text: String
    do throws(StoreError) {
      let file = try HostFile(cookies)
      let bytes = try file.read(at: 0, count: Int(file.byteCount))
      text = String(decoding: bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...], as: UTF8.self)
    } catch {
      throw ExitError(status: ExitStatus.noCookieFile, message: "the cookie file cannot be read: \(error.message)")
    }
    guard Self.mayHoldCookies(text) else {
      throw ExitError(
        status: ExitStatus.noCookieFile,
        message: "the cookie file holds no cookie: a line of 7 fields with tabs between them, or Set-Cookie: ...")
    }
    options.cookieFile = text
    return options
  }

  /// Whether the text has a line that curl takes for a cookie, or only blank lines and comments.
  private static func mayHoldCookies(_ text: String) -> Bool {
    let lines = text.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " || $0 == "\t" } }
    let isCookie = { (line: Substring) in
      line.utf8.count { $0 == UInt8(ascii: "\t") } >= 5 || line.lowercased().hasPrefix("set-cookie:")
    }
    return lines.contains(where: isCookie) || lines.allSatisfy { $0.isEmpty || $0.hasPrefix("#") }
  }
}

internal import HTTPTransport
internal import ImageCodec
internal import LineRPC
internal import Platform

/// Checks the installation with a session of its own, and prints the findings, one per line. Returns the exit status: 1
/// if something must be mended.
///
/// The session loads a small image as a thumbnail, so that cache, decoder and sandbox work as they do for a host.
func selfTest(_ options: Options) -> Int32 {
  var report = SelfTestReport()
  report.add(.ok, "version", "imageworker \(Version.current), protocol 1")
  switch SelfTestSession.run(options) {
  case .failure(let error): report.add(.failed, "worker", error.message)
  case .success(let answers):
    report.add(initialize: answers["initialize"], options)
    report.addThumbnail(answers["thumbnail"])
    report.addSystemFiles()
    report.addDescriptors()
  }
  guard printOutput(report.text) else { return ExitStatus.inputOrOutput }
  return report.hasFailed ? 1 : 0
}

/// The session of a self-test.
private enum SelfTestSession {
  /// A PNG of one pixel.
  private static let image =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

  private static let requests = """
    {"id":"initialize","method":"initialize","params":{"formats":true}}
    {"id":"thumbnail","method":"load","params":{"url":"\(image)","key":"imageworker-self-test","cache":"reload","transform":{"width":1,"format":"webp"}}}

    """

  struct Failure: Error {
    let message: String
  }

  /// Runs a worker on the requests. Returns the answers by id, or the reason why the worker did not start.
  ///
  /// Requests and answers are shorter than the buffer of a pipe, so that nobody needs to read or write meanwhile.
  static func run(_ options: Options) -> Result<[String: JSON], Failure> {
    var options = options
    // The report says what a warning would. The options that end a session early do not apply to this one.
    options.logLevel = .error
    options.metricsFile = nil
    let defaults = Options()
    (options.maxLine, options.deadline) = (defaults.maxLine, defaults.deadline)
    (options.endOfInput, options.exitStatus) = (defaults.endOfInput, defaults.exitStatus)
    var (input, output): ([Int32], [Int32]) = ([0, 0], [0, 0])
    let terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    guard terminal >= 0, pipe(&input) == 0, pipe(&output) == 0 else {
      return .failure(Failure(message: "a pipe cannot be made: \(String(cString: strerror(errno)))"))
    }
    let bytes = Array(requests.utf8)
    _ = writeDescriptor(input[1], bytes, bytes.count)
    close(input[1])
    dup2(input[0], STDIN_FILENO)
    dup2(output[1], STDOUT_FILENO)
    var problem = ""
    let status = Worker.run(options) { problem = $0 }
    dup2(terminal, STDOUT_FILENO)
    guard status == 0 else { return .failure(Failure(message: problem)) }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = max(0, read(output[0], &buffer, buffer.count))
    var answers: [String: JSON] = [:]
    for line in buffer.prefix(count).split(separator: 0x0A) {
      guard case .object(let answer)? = try? line.withUnsafeBytes({ try JSON(parsing: $0) }),
        case .string(let id)? = answer["id"]
      else { continue }
      answers[id] = .object(answer)
    }
    return .success(answers)
  }
}

/// The results of the checks, one line each.
private struct SelfTestReport {
  enum Finding: String {
    case ok, warning, failed
  }

  private var lines: [[UInt8]] = []
  private(set) var hasFailed = false

  mutating func add(_ finding: Finding, _ subject: String, _ text: String) {
    let columns = [(finding.rawValue, 9), (subject, 14)].map { $0 + String(repeating: " ", count: $1 - $0.count) }
    lines.append(singleLine(columns.joined() + text, atMost: .max))
    if finding == .failed { hasFailed = true }
  }

  var text: String { String(decoding: lines.joined(), as: UTF8.self) }

  // MARK: Checks

  mutating func add(initialize answer: JSON?, _ options: Options) {
    let directory = answer?["result"]?["cache"]?["directory"]?.text ?? ""
    addSpace(of: directory, options)
    if let missing = DecoderExecutable.missing { return add(.failed, "decoder", missing) }
    if let codec = try? DecoderExecutable.find() { add(.ok, "decoder", codec) }
    let formats = answer?["result"]?["formats"]
    let decoded = formats?["decode"]?.texts ?? []
    if decoded.isEmpty {
      return add(.failed, "formats", "the decoder does not start; run it by hand to see whether a library is missing")
    }
    add(.ok, "formats", "decodes \(decoded.joined(separator: ", "))")
    add(.ok, "", "encodes \((formats?["encode"]?.texts ?? []).joined(separator: ", "))")
    if case .object(let libraries)? = formats?["libraries"] {
      let versions = libraries.members.compactMap { library in library.value.text.map { "\(library.name) \($0)" } }
      add(.ok, "libraries", versions.joined(separator: ", "))
    }
    let missing = ImageFormat.allCases.map(\.rawValue).filter { $0 != "jp2" && !decoded.contains($0) }
    if !missing.isEmpty {
      add(.warning, "formats", "\(missing.joined(separator: ", ")) cannot be decoded; libvips has no support for them")
    }
    let sandbox = answer?["result"]?["sandbox"]?.texts ?? []
    add(.ok, "sandbox", sandbox.joined(separator: ", "))
    for layer in ["landlock", "seccomp"] where !sandbox.contains(layer) {
      add(.warning, "sandbox", "\(layer) is missing; it needs Linux 5.13 or newer, and a container that permits it")
    }
  }

  private mutating func addSpace(of directory: String, _ options: Options) {
    guard options.diskLimit > 0 else { return add(.ok, "cache", "in memory only (--disk-limit 0)") }
    var space = statvfs()
    guard statvfs(directory, &space) == 0 else { return add(.failed, "cache", "\(directory) cannot be examined") }
    let free = Int64(space.f_bavail) * Int64(space.f_frsize)
    add(.ok, "cache", "\(directory), \(free >> 20) MB free, limit \(options.diskLimit >> 20) MB")
    let reserve = Int64(space.f_blocks) * Int64(space.f_frsize) / 100 * Int64(options.minFree)
    if free < reserve + options.diskLimit {
      add(
        .warning, "cache",
        "may not reach its limit: \(options.minFree) % of the file system stay free (see --min-free)")
    }
  }

  mutating func addThumbnail(_ answer: JSON?) {
    if let result = answer?["result"], let time = result["timing"]?["totalMs"]?.roundedNumber {
      add(.ok, "thumbnail", "a PNG became a WebP in \(time) ms")
      if result["kept"] == .bool(false) {
        add(.failed, "cache", "an image cannot be kept on disk: no space is left, or the index cannot be used")
      }
    } else {
      add(.failed, "thumbnail", answer?["error"]?["message"]?.text ?? "no answer")
    }
  }

  /// Files of the system that HTTPS and the text of SVGs need.
  mutating func addSystemFiles() {
    let certificates = TrustedCertificates { name in getenv(name).map { String(cString: $0) } }.paths
    if let path = certificates.first(where: { access($0, R_OK) == 0 }) {
      add(.ok, "certificates", path)
    } else {
      let paths = certificates.joined(separator: " and ")
      add(.warning, "certificates", "HTTPS needs \(paths); install ca-certificates, or set SSL_CERT_FILE")
    }
    if let fonts = FontConfiguration.path {
      add(.ok, "fonts", fonts)
    } else {
      add(.warning, "fonts", "there is no /etc/fonts/fonts.conf: text in SVGs is drawn as boxes; install fontconfig")
    }
  }

  /// The session has raised the limit as far as it may.
  mutating func addDescriptors() {
    let limit = descriptorLimit() ?? 0
    if limit >= 1024 { return add(.ok, "descriptors", "\(limit) files and connections at once") }
    add(.warning, "descriptors", "\(limit) at once limit the concurrent transfers; raise the hard limit (ulimit -Hn)")
  }
}

extension JSON {
  /// The member of an object; nil for any other value.
  fileprivate subscript(_ name: String) -> JSON? { if case .object(let object) = self { object[name] } else { nil } }

  fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }

  fileprivate var roundedNumber: Int64? {
    switch self {
    case .integer(let number): number
    case .number(let number): Int64(exactly: number.rounded())
    default: nil
    }
  }

  fileprivate var texts: [String] {
    if case .array(let elements) = self { elements.compactMap(\.text) } else { [] }
  }
}

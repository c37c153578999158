internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Recording

/// Starts the recording that the options ask for.
///
/// - Returns: the options of the session, which has an empty cache of its own while it is recorded, and the recorder;
///   nil without a recording.
func startRecording(_ options: Options, _ log: Log) throws(StartError) -> (Options, Recorder?) {
  guard let name = options.recordDirectory else {
    guard !options.recordRedactsQueries else {
      throw StartError(message: "--record-redact-query must be used with --record", status: EX_USAGE)
    }
    return (options, nil)
  }
  guard options.readOnlyCaches.isEmpty else {
    let message = "--record must not be used with --read-only-cache, whose images a replay would not have"
    throw StartError(message: message, status: EX_USAGE)
  }
  var directory = CacheDirectory.absolute(name)
  while directory.hasSuffix("/"), directory.count > 1 { directory.removeLast() }
  do throws(RecordingError) {
    let created = try RecordingDirectory(creating: directory)
    if created.path != directory { log.write(.recordingMoved(directory, to: created.path)) }
    var options = options
    options.cacheDirectory = created.cache
    options.trace = options.trace.map { CacheDirectory.absolute($0) }
    let recorder = try Recorder(
      in: created, header: options.recordingHeader,
      paths: WorkerPaths(
        cache: created.cache, scratch: ScratchFolder.defaultParent, pixels: PixelFolder.defaultParent),
      onFailure: { log.write(.recordingFailed(created.path, $0)) })
    return (options, recorder)
  } catch {
    throw StartError(message: "the session cannot be recorded: \(error.message)")
  }
}

extension Options {
  /// The options that concern the recording or a replay itself.
  private static let omittedMembers: Set = [
    "cacheDir", "readOnlyCache", "record", "recordRedactQuery", "metricsFile",
  ]

  fileprivate var recordingHeader: Header {
    let machine = Machine.current
    return Header(
      version: Version.current, seed: .random(in: .min ... .max), options: json, processors: machine.processors,
      descriptors: machine.descriptors, redactsQueries: recordRedactsQueries)
  }

  private var json: JSONObject {
    var writer = JSONWriter()
    writer.object { writer in
      for definition in OptionDefinition.all where !Self.omittedMembers.contains(definition.member) {
        definition.write(self, to: &writer)
      }
    }
    guard case .object(let object)? = try? JSON(parsing: writer.bytes) else {
      preconditionFailure("the options are valid JSON")
    }
    return object
  }

  /// The options of a recorded session, for a replay on this machine.
  init(recordedIn header: Header) throws(RecordingError) {
    self.init()
    for member in header.options.members {
      guard let definition = OptionDefinition.all.first(where: { $0.member == member.name }) else {
        throw RecordingError("this version of the worker has no option \(member.name.quotable)")
      }
      if let problem = definition.set(member.value, in: &self) {
        throw RecordingError("the recorded option \(member.name) \(problem)")
      }
    }
    replayedMachine = Machine(processors: header.processors, descriptors: header.descriptors)
    // The cookie file is not part of a recording; its name stands for its content.
    (cookieFile, cookies) = (cookies, nil)
  }
}

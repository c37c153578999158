/// The bodies of the running transfers of a replay.
struct ReplayBodies {
  private let recording: Recording
  private var open: [UInt64: (file: BodyFile, offset: Int64)] = [:]

  init(_ recording: Recording) { self.recording = recording }

  /// The next bytes of a transfer's body.
  mutating func next(_ count: Int, of transfer: UInt64) throws(RecordingError) -> [UInt8] {
    let path = recording.bodies[transfer] ?? recording.files.part(ofTransfer: transfer)
    let (file, offset) = if let body = open[transfer] { body } else { (try BodyFile(path), Int64(0)) }
    let bytes = try file.read(at: offset, count: count)
    guard bytes.count == count else { throw RecordingError("\(path) is shorter than recorded") }
    open[transfer] = (file, offset + Int64(count))
    return bytes
  }

  mutating func end(_ transfer: UInt64) { open[transfer] = nil }
}

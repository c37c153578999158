internal import LineRPC
internal import Platform

/// The lines of a journal, from the first.
final class JournalLines {
  /// The number of the line that was read last.
  private(set) var number = 0
  /// Whether the file ends within a line, as after a kill. The incomplete line is not returned.
  private(set) var isCut = false

  private let path: String
  private let file: Int32
  /// Bytes that have been read and not returned, from `position`.
  private var buffer: [UInt8] = []
  private var position = 0

  init(_ path: String) throws(RecordingError) {
    self.path = path
    file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw RecordingError("\(path) cannot be opened: \(String(cString: strerror(errno)))") }
  }

  deinit { close(file) }

  /// The next line; nil at the end.
  func next() throws(RecordingError) -> JSON? {
    guard let line = try nextText() else { return nil }
    number += 1
    do throws(JSONError) {
      return try JSON(parsing: line)
    } catch {
      throw located("is not JSON: \(error.reason) at byte \(error.offset)")
    }
  }

  /// An error about the line that was read last.
  func located(_ message: String) -> RecordingError { RecordingError("\(path), line \(number): \(message)") }

  private func nextText() throws(RecordingError) -> [UInt8]? {
    var searched = position
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { position = end + 1 }
        return Array(buffer[position..<end])
      }
      buffer.removeFirst(position)
      position = 0
      searched = buffer.count
      var piece = [UInt8](repeating: 0, count: 1 << 18)
      let count = read(file, &piece, piece.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw RecordingError("\(path) cannot be read: \(String(cString: strerror(errno)))") }
      if count == 0 {
        isCut = !buffer.isEmpty
        return nil
      }
      buffer += piece.prefix(count)
    }
  }
}

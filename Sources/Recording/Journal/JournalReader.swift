internal import LineRPC
internal import Platform

/// A cause with its effects.
struct JournalGroup: Sendable {
  var cause: Cause
  var moment: Moment
  /// The number of the cause's line.
  var line: Int
  /// The effects, with the numbers of their lines.
  var effects: [(line: Int, json: JSON)] = []
  /// The values that the session read from other threads.
  var observed: [Bool] = []
}

/// Reads a journal from its beginning, group by group.
final class JournalReader {
  let header: Header

  private let lines: JournalLines
  private let coding: JournalCoding
  /// The cause of the next group.
  private var next: (cause: Cause, moment: Moment, line: Int)?

  init(_ path: String, start: Instant) throws(RecordingError) {
    lines = try JournalLines(path)
    coding = JournalCoding(start: start)
    guard let first = try lines.next() else { throw RecordingError("\(path) has no complete line") }
    do throws(RecordingError) {
      header = try Header(Members(first))
    } catch {
      throw lines.located(error.message)
    }
  }

  /// Whether the journal ends within a line.
  var isCut: Bool { lines.isCut }

  /// The next group; nil at the end.
  func nextGroup() throws(RecordingError) -> JournalGroup? {
    if next == nil, let line = try lines.next() {
      guard let cause = try cause(line) else { throw lines.located("an effect must follow its cause") }
      next = cause
    }
    guard let (cause, moment, number) = next.take() else { return nil }
    var group = JournalGroup(cause: cause, moment: moment, line: number)
    while let line = try lines.next() {
      next = try self.cause(line)
      if next != nil { break }
      if let values = line.observedValues {
        group.observed = values
      } else {
        group.effects.append((lines.number, line))
      }
    }
    return group
  }

  /// The cause that a line describes; nil for an effect.
  private func cause(_ line: JSON) throws(RecordingError) -> (cause: Cause, moment: Moment, line: Int)? {
    do throws(RecordingError) {
      let members = try Members(line)
      guard members.has("cause") else { return nil }
      return (try coding.cause(members), try coding.moment(members), lines.number)
    } catch {
      throw lines.located(error.message)
    }
  }
}

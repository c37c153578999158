/// The lines that wait to be written, in their order.
///
/// Nothing is ever dropped but a replaceable line for a newer one about the same request. The newer line takes the
/// place of the older, so it overtakes lines about other requests, but never one about its own.
struct OutputQueue: Sendable {
  private struct Piece {
    /// One or more whole lines.
    var lines: [UInt8]
    /// Whose line it is, if it is a replaceable one.
    var subject: RequestToken?
  }

  private var pieces: [Piece] = []
  /// Pieces before this index have been taken.
  private var first = 0
  /// How many pieces have been removed from `pieces` since the beginning: what makes an index lasting.
  private var removed = 0
  /// Where a newer line about a request would go.
  private var places: [RequestToken: Int] = [:]

  /// Lines are gathered into pieces of about this many bytes, what a pipe takes at once.
  private static let pieceSize = 1 << 16

  /// Bytes waiting.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ line: [UInt8], about subject: RequestToken?) {
    if let subject, !places.isEmpty { places[subject] = nil }
    count += line.count
    if let last = pieces.indices.last, last >= first, pieces[last].subject == nil,
      pieces[last].lines.count + line.count <= Self.pieceSize
    {
      pieces[last].lines.append(contentsOf: line)
    } else {
      pieces.append(Piece(lines: line, subject: nil))
    }
  }

  mutating func appendReplaceable(_ line: [UInt8], about subject: RequestToken) {
    count += line.count
    if let place = places[subject] {
      count -= pieces[place - removed].lines.count
      pieces[place - removed].lines = line
    } else {
      places[subject] = removed + pieces.count
      pieces.append(Piece(lines: line, subject: subject))
    }
  }

  /// Takes whole lines from the front: as many as are there up to about 64 kB, but one at least. Empty if none waits.
  mutating func take() -> [UInt8] {
    var taken: [UInt8] = []
    while first < pieces.count, taken.isEmpty || taken.count + pieces[first].lines.count <= Self.pieceSize {
      if let subject = pieces[first].subject, places[subject] == removed + first { places[subject] = nil }
      if taken.isEmpty {
        swap(&taken, &pieces[first].lines)
      } else {
        taken.append(contentsOf: pieces[first].lines)
        pieces[first].lines = []
      }
      first += 1
    }
    count -= taken.count
    if first * 2 >= pieces.count {
      pieces.removeFirst(first)
      removed += first
      first = 0
    }
    return taken
  }

  mutating func removeAll() { self = OutputQueue() }
}

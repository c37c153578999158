/// The lines that wait to be written, in their order.
///
/// A line is dropped only if it is replaceable and a newer line about the same request replaces it. The newer line
/// takes its position, and so overtakes lines about other requests, but never one about its own.
struct OutputQueue: Sendable {
  private struct Piece {
    /// One or more whole lines.
    var lines: [UInt8]
    /// The request that the line is about, if the line is replaceable.
    var subject: RequestToken?
  }

  private var pieces: [Piece] = []
  /// Pieces before this index have been dequeued.
  private var first = 0
  /// Number of pieces ever removed from the front of `pieces`. Added to an index, it makes a lasting position.
  private var removed = 0
  /// Positions of the queued lines that a newer line about the same request replaces.
  private var positions: [RequestToken: Int] = [:]

  /// Lines are gathered into pieces of about this many bytes, which is the capacity of a pipe.
  private static let pieceSize = 1 << 16

  /// Number of queued bytes.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ line: [UInt8], about subject: RequestToken?) {
    if let subject, !positions.isEmpty { positions[subject] = nil }
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
    if let position = positions[subject] {
      count -= pieces[position - removed].lines.count
      pieces[position - removed].lines = line
    } else {
      positions[subject] = removed + pieces.count
      pieces.append(Piece(lines: line, subject: subject))
    }
  }

  /// Removes whole lines from the front: up to about 64 kB of them, but at least one. Returns no bytes if none is
  /// queued.
  mutating func dequeue() -> [UInt8] {
    var lines: [UInt8] = []
    while first < pieces.count, lines.isEmpty || lines.count + pieces[first].lines.count <= Self.pieceSize {
      if let subject = pieces[first].subject, positions[subject] == removed + first { positions[subject] = nil }
      if lines.isEmpty {
        swap(&lines, &pieces[first].lines)
      } else {
        lines.append(contentsOf: pieces[first].lines)
        pieces[first].lines = []
      }
      first += 1
    }
    count -= lines.count
    if first * 2 >= pieces.count {
      pieces.removeFirst(first)
      removed += first
      first = 0
    }
    return lines
  }

  /// Puts back the end of what was dequeued last.
  mutating func prepend(_ lines: [UInt8]) {
    count += lines.count
    if first > 0 {
      first -= 1
      pieces[first] = Piece(lines: lines, subject: nil)
    } else {
      // The lasting positions of the other pieces stay the same.
      pieces.insert(Piece(lines: lines, subject: nil), at: 0)
      removed -= 1
    }
  }

  mutating func removeAll() { self = OutputQueue() }
}

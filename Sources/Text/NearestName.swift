extension Collection<String> {
  /// The name that a misspelled one probably stands for: it differs only in case, `-` and `_`, it begins with the
  /// misspelled name or the other way round, or at most two characters (one in a name of up to four) are wrong, missing,
  /// added or swapped with their neighbour. Nil if no name is that near.
  ///
  /// Takes time in proportion to the lengths of the names; a misspelled name of more than 64 bytes has no nearest.
  public func nearest(to misspelled: String) -> String? {
    guard misspelled.utf8.count <= 64 else { return nil }
    let text = letters(of: misspelled)
    let maxDistance = text.count <= 4 ? 1 : 2
    let candidates = map { (name: $0, letters: letters(of: $0)) }
    let distances = candidates.map { (name: $0.name, distance: editDistance(text, $0.letters)) }
    if let nearest = distances.min(by: { $0.distance < $1.distance }), nearest.distance <= maxDistance {
      return nearest.name
    }
    guard text.count >= 3 else { return nil }
    return candidates.first { $0.letters.starts(with: text) || text.starts(with: $0.letters) }?.name
  }
}

private func letters(of name: String) -> [UInt8] {
  Array(name.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_") })
}

/// The optimal string alignment distance: the edits of Levenshtein's distance, and swaps of neighbours.
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...right.count)
  for (row, character) in left.enumerated() {
    var current = [row + 1]
    for (column, other) in right.enumerated() {
      var distance = Swift.min(current[column], last[column + 1]) + 1
      distance = Swift.min(distance, last[column] + (character == other ? 0 : 1))
      if row > 0, column > 0, character == right[column - 1], left[row - 1] == other {
        distance = Swift.min(distance, beforeLast[column - 1] + 1)
      }
      current.append(distance)
    }
    (beforeLast, last) = (last, current)
  }
  return last[right.count]
}

/// The end of a message about an unknown name: the nearest of the known names, or else all of them.
public func hint(for unknown: String, among known: [String]) -> String {
  if let nearest = known.nearest(to: unknown) { return " (did you mean \(nearest)?)" }
  return known.isEmpty ? " (there are none)" : " (known: \(known.joined(separator: ", ")))"
}

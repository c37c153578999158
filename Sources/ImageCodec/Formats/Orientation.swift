/// One of the eight orientations of an image: an optional horizontal mirroring, then quarter turns to the left.
struct Orientation: Hashable {
  private var isMirrored = false
  private var leftTurns = 0

  mutating func turnLeft(times: Int) { leftTurns = (leftTurns + times) % 4 }

  /// Mirrors the oriented image, left to right or top to bottom.
  mutating func mirror(isLeftRight: Bool) {
    // Swapping a mirroring with a turn reverses the turn. Top to bottom is left to right plus a half turn.
    leftTurns = (4 - leftTurns + (isLeftRight ? 0 : 2)) % 4
    isMirrored.toggle()
  }

  /// The value of EXIF's orientation tag for this orientation.
  var exifValue: Int { (isMirrored ? [2, 5, 4, 7] : [1, 8, 3, 6])[leftTurns] }

  /// The inverse of an orientation; only quarter turns are not their own inverse.
  static func exifValue(undoing value: Int) -> Int { value == 6 ? 8 : value == 8 ? 6 : value }
}

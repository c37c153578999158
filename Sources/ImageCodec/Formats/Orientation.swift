/// One of the eight ways to lay a picture: mirrored left to right or not, then turned to the left by quarters.
struct Orientation: Hashable {
  private var isMirrored = false
  private var leftTurns = 0

  mutating func turnLeft(times: Int) { leftTurns = (leftTurns + times) % 4 }

  /// Mirrors what is shown so far, left to right or top to bottom.
  mutating func mirror(isLeftRight: Bool) {
    // A mirror moved before a turn reverses it; top to bottom is left to right and half a turn.
    leftTurns = (4 - leftTurns + (isLeftRight ? 0 : 2)) % 4
    isMirrored.toggle()
  }

  /// The value of EXIF's orientation tag that asks for the same.
  var exifValue: Int { (isMirrored ? [2, 5, 4, 7] : [1, 8, 3, 6])[leftTurns] }

  /// Only a quarter turn is not its own opposite.
  static func exifValue(undoing value: Int) -> Int { value == 6 ? 8 : value == 8 ? 6 : value }
}

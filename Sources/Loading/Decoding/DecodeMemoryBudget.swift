/// How many bytes of images wait for a decoder in memory, because no file has them. Beyond a limit they wait in scratch
/// files.
struct DecodeMemoryBudget {
  var limit = 16 << 20
  private(set) var count = 0

  /// False when there is no room; else `giveBack` is due once they wait no more.
  mutating func take(_ bytes: Int) -> Bool {
    guard count + bytes <= limit else { return false }
    count += bytes
    return true
  }

  mutating func giveBack(_ bytes: Int) { count -= bytes }
}

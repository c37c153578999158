/// The budget for source bytes that wait for a decoder in memory because no file has them. Beyond the limit they wait
/// in scratch files.
@LoadingActor
final class DecodeMemoryBudget {
  var limit = 16 << 20
  private(set) var count = 0

  /// Reserves bytes. Returns false if the limit would be exceeded; otherwise `giveBack` must follow when they no longer
  /// wait.
  func take(_ bytes: Int) -> Bool {
    guard count + bytes <= limit else { return false }
    count += bytes
    return true
  }

  func giveBack(_ bytes: Int) { count -= bytes }
}

/// The decodes of several pools, such as those of all workers of a cache directory, which together run as many decodes
/// as one of them may.
///
/// The first decode of a pool always runs, so that no pool waits for another. The methods are called on the pool's
/// thread, which must not be blocked.
public protocol SharedDecodes: Sendable {
  /// Records that this pool runs `count` decodes, of which the last begins now.
  ///
  /// - Returns: false if there would be more than `limit` in all pools, and this is not the only one of this pool. Then
  ///   the decode must wait, and one less is recorded.
  func begin(_ count: Int, limit: Int) -> Bool

  /// Records that this pool runs `count` decodes.
  func record(_ count: Int)
}

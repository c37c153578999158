internal import ImageStore

/// What turned out to be corrupt, and is not decoded again for a while: a stored image, and what was to be made of it.
///
/// What one decode stumbles on another may never read. And what is transferred anew is decoded anew, if it has the same
/// content: the file of before may have been damaged on its disk.
struct CorruptDecodeKey: Hashable {
  static let capacity = 10_000

  let id: Int64
  let digest: [UInt8]
  let step: DecodePlan.Step
  /// The canonical form of the transform.
  let to: String

  init(_ response: StoredResponse, _ step: DecodePlan.Step, to transform: String) {
    (id, digest, self.step, to) = (response.id, response.digest, step, transform)
  }
}

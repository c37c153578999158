internal import ImageStore

/// The key of a remembered `corrupt` failure: a stored image, and the operation that failed on it.
///
/// The operation is part of the key because an error that fails one decode may lie in data that another never reads.
/// The response's id is part of it so that a new transfer is decoded again even if its content is the same: the earlier
/// file may have been damaged on disk.
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

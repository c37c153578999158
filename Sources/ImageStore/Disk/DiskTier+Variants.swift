/// Variants are stored next to their original and belong to one content of it.
///
/// The rows of an original and of its variants have the same header fields and times, whichever is revalidated. A
/// stored variant never differs in content from its stored original. A variant may outlive its original if the original
/// is evicted first.
extension DiskTier {
  /// Writes the decode metadata of a stored response. Does nothing if the response is deleted.
  public func recordMetadata(of response: StoredResponse) {
    guard mode == .readWrite else { return }
    try? session.withIndex { index throws(SQLiteError) in try index.setDecodeMetadata(of: response) }
    schedule.recordWrite()
  }

  /// Whether the original that the variant was made from has been replaced by one of another content.
  func isOutdated(_ variant: StoredResponse, in index: DiskIndex) throws(SQLiteError) -> Bool {
    guard let source = variant.metadata?.source else { return false }
    return try index.digest(ofOriginalOf: variant).map { $0 != source.digest } ?? false
  }

  /// Updates the variants of an original that was just inserted, and removes those of another content.
  func reconcileVariants(of original: StoredResponse, in index: DiskIndex, now: Int) throws(SQLiteError) {
    for sibling in try index.siblings(of: original) {
      if sibling.originalDigest == original.content.digest {
        try index.update(original, id: sibling.record.id)
      } else {
        try replace(sibling.record, in: index, now: now)
      }
    }
  }

  /// Writes the fields that a 304 changed to all rows of the same original.
  func updateSiblings(of response: StoredResponse, in index: DiskIndex) throws(SQLiteError) {
    for sibling in try index.siblings(of: response) where sibling.originalDigest == response.originalDigest {
      try index.update(response, id: sibling.record.id)
    }
  }
}

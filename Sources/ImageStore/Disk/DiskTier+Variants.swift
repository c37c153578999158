/// Variants, which are stored beside their originals and belong to one content of them.
///
/// The rows of an original and of its variants agree in header fields and times, whoever revalidates, and no variant
/// stands beside an original that it was not made of. A variant may outlive its original, if that is evicted first.
extension DiskTier {
  /// Writes what decoding has told of a stored response. Nothing happens when it is gone.
  public func note(findingsOf response: StoredResponse) {
    guard mode == .readWrite else { return }
    try? withIndex { index throws(SQLiteError) in try index.setFindings(of: response) }
    schedule.noteWrite()
  }

  /// Whether an original of another content has taken the place of the one that the variant was made of.
  func isOutdated(_ variant: StoredResponse, in index: DiskIndex) throws(SQLiteError) -> Bool {
    guard let source = variant.metadata?.source else { return false }
    return try index.digest(ofOriginalOf: variant).map { $0 != source.digest } ?? false
  }

  /// Brings the variants of an original that has just been listed in line with it: those of another content go.
  func settleVariants(of original: StoredResponse, in index: DiskIndex, now: Int) throws(SQLiteError) {
    for relative in try index.relatives(of: original) {
      if relative.originalDigest == original.digest {
        try index.update(original, id: relative.record.id)
      } else {
        try replace(relative.record, in: index, now: now)
      }
    }
  }

  /// Writes what a 304 changed, for all that is of the same original.
  func updateRelatives(of response: StoredResponse, in index: DiskIndex) throws(SQLiteError) {
    for relative in try index.relatives(of: response) where relative.originalDigest == response.originalDigest {
      try index.update(response, id: relative.record.id)
    }
  }
}

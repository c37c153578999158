internal import Text

/// The columns of `responses` that decoding fills, and the relation of variants to their originals.
extension DiskIndex {
  /// Merges the decode metadata into the row: of two concurrent decodes, neither knows the results of the other.
  func setDecodeMetadata(of response: StoredResponse) throws(SQLiteError) {
    let set = try writing(
      """
      UPDATE responses SET checked = nullif(coalesce(checked, 0) | ?2, 0), thumbhash = coalesce(?3, thumbhash),
        color = coalesce(?4, color), source_digest = ?5, source_bytes = ?6, source_format = ?7, source_width = ?8,
        source_height = ?9 WHERE id = ?1
      """)
    let (placeholder, source) = (response.metadata?.placeholder, response.metadata?.source)
    try set.bind(
      response.id, response.metadata?.flags ?? 0,
      placeholder?.thumbHash, placeholder.map { Int($0.color) }, source?.digest, source.map { Int($0.byteCount) },
      source?.format?.rawValue, source?.header?.width, source?.header?.height
    ).run()
  }

  /// The rows with the same key, partition and varying fields but another variant: for an original its variants, for a
  /// variant the original and the other variants.
  func siblings(of response: StoredResponse) throws(SQLiteError) -> [SiblingRow] {
    let find = try writing(
      """
      SELECT id, digest, format, allocated, used_at, delivered_at, coalesce(source_digest, digest)
      FROM responses WHERE key = ?1 AND partition = ?2 AND selection = ?3 AND variant <> ?4
      """)
    return try find.bind(response.key, response.partition, response.varyKey.text, response.variant).rows {
      SiblingRow(record: FileRecord($0), originalDigest: $0.bytes(6))
    }
  }

  /// The digest of the stored original with the same key, partition and varying fields as the variant; nil if there is
  /// none.
  func digest(ofOriginalOf variant: StoredResponse) throws(SQLiteError) -> [UInt8]? {
    let find = try writing(
      "SELECT digest FROM responses WHERE key = ?1 AND partition = ?2 AND variant = '' AND selection = ?3")
    return try find.bind(variant.key, variant.partition, variant.varyKey.text).first { $0.bytes(0) }
  }

  struct SiblingRow {
    var record: FileRecord
    var originalDigest: [UInt8]
  }
}

extension DecodeMetadata {
  /// The value of `checked`. From bit 16 on, it has the orientation of the original of a variant in 4 bits and the
  /// number of its frames; both are 0 in the rows of older versions.
  fileprivate var flags: Int {
    let original = source?.header.map { $0.orientation | min($0.frames, Int(Int32.max)) << 4 } ?? 0
    return (isChecked ? 1 : 0) | notes.rawValue << 1 | original << 16
  }

  /// Reads the metadata columns; nil if all of them are empty, as in most rows.
  ///
  /// - Parameter first: the first of the columns, in the order of the query in `find`.
  static func read(_ row: borrowing Row, from first: Int32) -> DecodeMetadata? {
    let flags = row.int(first)
    let (isChecked, notes) = (flags & 1 != 0, ImageNotes(rawValue: flags >> 1).intersection(.all))
    let placeholder =
      row.isNull(first + 1)
      ? nil : Placeholder(thumbHash: row.bytes(first + 1), color: UInt32(truncatingIfNeeded: row.integer(first + 2)))
    var source =
      row.isNull(first + 3)
      ? nil
      : ImageDescription(
        ImageHeader(row, from: first + 5), byteCount: row.integer(first + 4), digest: row.bytes(first + 3))
    source?.header?.orientation = flags >> 16 & 15
    source?.header?.frames = max(1, flags >> 20)
    guard flags != 0 || placeholder != nil || source != nil else { return nil }
    return DecodeMetadata(source: source, placeholder: placeholder, isChecked: isChecked, notes: notes)
  }
}

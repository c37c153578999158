/// A stored response as the commands of `imageworker cache` show it. Times are Unix seconds.
public struct CacheEntry: Sendable, Equatable {
  public var id: Int64
  public var key: String
  public var url: String
  /// The digest of the credentials that the response belongs to; empty if none.
  public var partition: String
  /// The canonical form of the transform that made it; empty for an original.
  public var variant: String
  public var content: ImageDescription
  /// The size of its file on disk, in whole blocks.
  public var allocated: Int64
  public var storedAt: Int
  public var validatedAt: Int
  /// The end of freshness by the policy of the worker that stored or revalidated it.
  public var expiresAt: Int
  /// The last delivery; nil if it was never delivered.
  public var lastUse: Int?
  public var uses: Int
  /// The number of stored variants of an original; 0 for a variant.
  public var variants: Int

  /// The path of the file, relative to the folder of the namespace.
  public var file: String { FileName(id: id, digest: content.digest, format: content.format).path }
}

/// The order in which entries are listed. Entries that are equal in it are ordered by their ids.
public enum EntryOrder: String, Sendable, CaseIterable {
  /// By key, compared by bytes; the variants of an original follow it.
  case key
  /// The largest first.
  case size
  /// The oldest first, by the time at which the body arrived.
  case age
  /// The most recently used first.
  case used
  /// The most frequently used first.
  case uses

  /// The SQL expression whose ascending values have this order; nil for `key`.
  var expression: String? {
    switch self {
    case .key: nil
    case .size: "-bytes"
    case .age: "stored_at"
    case .used: "-iif(uses > 0, used_at, delivered_at)"
    case .uses: "-uses"
    }
  }
}

extension CacheEntry {
  /// The columns that `init` reads, of the table `responses` under the name `entry`.
  static let columns = """
    entry.id, entry.key, entry.url, entry.partition, entry.variant, entry.allocated, entry.stored_at,
    entry.validated_at, entry.expires_at, iif(entry.uses > 0, entry.used_at, entry.delivered_at), entry.uses,
    iif(entry.variant = '', (
      SELECT count(*) FROM responses WHERE key = entry.key AND partition = entry.partition AND variant > ''), 0),
    \(ImageDescription.columns.map { "entry." + $0 }.joined(separator: ", "))
    """
  static let columnCount: Int32 = 20

  init(_ row: borrowing Row) {
    let key = row.text(1)
    let lastUse = row.int(9)
    self.init(
      id: row.integer(0), key: key, url: row.optionalText(2) ?? key, partition: row.text(3), variant: row.text(4),
      content: ImageDescription(row, from: 12), allocated: row.integer(5), storedAt: row.int(6),
      validatedAt: row.int(7), expiresAt: row.int(8), lastUse: lastUse > 0 ? lastUse : nil, uses: row.int(10),
      variants: row.int(11))
  }
}

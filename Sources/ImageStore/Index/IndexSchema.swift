internal import HTTPTypes

/// The index of the disk tier, `index.sqlite`, version 7.
///
/// - `responses`: one row for each stored response. The file name is derived from `id`, `digest` and `format`.
///   `selection` contains the varying request fields as text. `url` is NULL if it equals `key`; since version 6 only
///   the other rows have a `url_hash`, and are in the SQL index by URL. `used_at` orders eviction, and `delivered_at`
///   is when the path was last delivered to a host; both are delayed by the flush interval. `allocated` is the size of
///   the file on disk. Since version 3: `boot` identifies the run of the system that wrote the file, and is NULL once
///   the file was verified in a later run; `checked` is a sum of 1 if every pixel is known to decode and twice the
///   number of its `ImageNotes`, and for a variant the orientation of its original and its frames
///   (`DecodeMetadata.flags`); `thumbhash` and `color`; and for a variant its original (`source_…`).
/// - `doomed`: pending deletions: files without a row that must not be deleted before `due`.
/// - `partials`: temporary files of partial bodies (since version 2). `request` is a digest of the request's properties
///   that may change the response, `boot` identifies the run of the system that wrote the file, and `allocated` is 0
///   while the file is being written.
/// - `totals`: one row, updated by triggers: the number of rows in `responses`, the allocated bytes of all tables,
///   and since version 4 the number of variants, so that a cache without variants has no cost for them.
///
/// Versions 5 and 6 had pins, in a table and in columns of `responses` and `totals`. The migration removes them.
///
/// Every look-up, every filter of `clear` and the choice of rows to evict has an SQL index. Text is compared by its
/// UTF-8 bytes. Times are Unix seconds.
enum IndexSchema {
  static let version = 7

  static let creation =
    responses + indexByURL + indexesByTime + totals + countingOfResponses + countingOfDoomed + partials
    + "PRAGMA user_version = \(version);"

  /// The SQL that migrates an older version to this one; nil for an unknown version. Each element of `migrations` leads
  /// to the next version: a new version appends one.
  static func migration(from version: Int) -> String? {
    guard (1..<Self.version).contains(version) else { return nil }
    let migrations = [partials, newDecodingColumns, newCountOfVariants, "", newIndexByURL, ""].dropFirst(version - 1)
    return migrations.joined() + (version >= 5 ? removalOfPins : "") + "PRAGMA user_version = \(Self.version);"
  }

  /// The columns of version 3. In older rows `boot` is 0, which matches no run. The other columns are NULL until
  /// decoding fills them.
  private static let decodingColumns = [
    "boot INTEGER DEFAULT 0", "checked INTEGER", "thumbhash BLOB", "color INTEGER", "source_digest BLOB",
    "source_bytes INTEGER", "source_format TEXT", "source_width INTEGER", "source_height INTEGER",
  ]

  private static let newDecodingColumns =
    decodingColumns.map { "ALTER TABLE responses ADD COLUMN \($0);" }.joined()

  private static let newCountOfVariants =
    """
    ALTER TABLE totals ADD COLUMN variants INTEGER NOT NULL DEFAULT 0;
    UPDATE totals SET variants = (SELECT count(*) FROM responses WHERE variant > '');
    DROP TRIGGER response_added; DROP TRIGGER response_removed;

    """ + countingOfResponses

  private static let removalOfPins =
    """
    DROP TABLE pins; DROP TRIGGER response_pinned; DROP TRIGGER response_added; DROP TRIGGER response_removed;
    DROP INDEX responses_by_storing; DROP INDEX responses_by_expiry; DROP INDEX responses_by_use;
    ALTER TABLE responses DROP COLUMN pinned; ALTER TABLE totals DROP COLUMN pinned;
    ALTER TABLE totals DROP COLUMN pinned_bytes; ALTER TABLE totals DROP COLUMN disk_limit;

    """ + indexesByTime + countingOfResponses

  private static let partials = """
    CREATE TABLE partials(
      id INTEGER PRIMARY KEY, key TEXT NOT NULL, partition TEXT NOT NULL, request BLOB NOT NULL,
      url TEXT NOT NULL, url_hash INTEGER NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, final_url TEXT NOT NULL,
      validator TEXT NOT NULL, headers TEXT NOT NULL, length INTEGER,
      stored_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, boot TEXT NOT NULL, allocated INTEGER NOT NULL);
    CREATE INDEX partials_by_key ON partials(key, partition);
    CREATE TRIGGER partial_added AFTER INSERT ON partials BEGIN
      UPDATE OR FAIL totals SET bytes = bytes + new.allocated; END;
    CREATE TRIGGER partial_changed AFTER UPDATE OF allocated ON partials BEGIN
      UPDATE OR FAIL totals SET bytes = bytes + new.allocated - old.allocated; END;
    CREATE TRIGGER partial_removed AFTER DELETE ON partials BEGIN
      UPDATE OR FAIL totals SET bytes = bytes - old.allocated; END;

    """

  private static let responses = """
    CREATE TABLE responses(
      id INTEGER PRIMARY KEY, key TEXT NOT NULL, partition TEXT NOT NULL, variant TEXT NOT NULL, selection TEXT NOT NULL,
      url TEXT, url_hash INTEGER NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, final_url TEXT,
      status INTEGER NOT NULL, headers TEXT NOT NULL, request_time INTEGER NOT NULL, response_time INTEGER NOT NULL,
      stored_at INTEGER NOT NULL, validated_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, media_type TEXT NOT NULL,
      format TEXT, width INTEGER, height INTEGER, frames INTEGER NOT NULL, orientation INTEGER NOT NULL,
      bytes INTEGER NOT NULL, digest BLOB NOT NULL, \(decodingColumns.joined(separator: ", ")),
      allocated INTEGER NOT NULL, used_at INTEGER NOT NULL, delivered_at INTEGER NOT NULL, uses INTEGER NOT NULL);
    CREATE UNIQUE INDEX responses_by_key ON responses(key, partition, variant, selection);
    CREATE INDEX responses_by_host ON responses(host, port);
    CREATE TABLE doomed(id INTEGER PRIMARY KEY, file TEXT NOT NULL, allocated INTEGER NOT NULL, due INTEGER NOT NULL);
    CREATE INDEX doomed_by_due ON doomed(due);

    """

  private static let indexByURL = "CREATE INDEX responses_by_url ON responses(url_hash) WHERE url IS NOT NULL;\n"

  private static let newIndexByURL = "DROP INDEX responses_by_url;" + indexByURL

  private static let indexesByTime = """
    CREATE INDEX responses_by_storing ON responses(stored_at);
    CREATE INDEX responses_by_expiry ON responses(expires_at);
    CREATE INDEX responses_by_use ON responses(used_at);

    """

  private static let totals = """
    CREATE TABLE totals(
      entries INTEGER NOT NULL, bytes INTEGER NOT NULL, variants INTEGER NOT NULL DEFAULT 0);
    INSERT INTO totals(entries, bytes) VALUES (0, 0);

    """

  private static let countingOfResponses = """
    CREATE TRIGGER response_added AFTER INSERT ON responses BEGIN
      UPDATE OR FAIL totals SET entries = entries + 1, bytes = bytes + new.allocated,
        variants = variants + (new.variant > ''); END;
    CREATE TRIGGER response_removed AFTER DELETE ON responses BEGIN
      UPDATE OR FAIL totals SET entries = entries - 1, bytes = bytes - old.allocated,
        variants = variants - (old.variant > ''); END;

    """

  private static let countingOfDoomed = """
    CREATE TRIGGER doomed_added AFTER INSERT ON doomed BEGIN
      UPDATE OR FAIL totals SET bytes = bytes + new.allocated; END;
    CREATE TRIGGER doomed_removed AFTER DELETE ON doomed BEGIN
      UPDATE OR FAIL totals SET bytes = bytes - old.allocated; END;

    """

  /// The columns that `FileRecord.init(_: Row)` reads, in order.
  static let recordColumns = "id, digest, format, allocated, used_at, delivered_at"

  /// The columns that `StoredResponse.init(_: Row)` reads, in order. Parameter 1 is the number of the current run of the
  /// system.
  static let responseColumns = """
    \(columnsOfVersion1), boot IS NULL OR boot = ?1, checked, thumbhash, color, source_digest, source_bytes,
    source_format, source_width, source_height
    """

  /// The same for an index before version 3, whose files must be verified.
  static let oldResponseColumns = columnsOfVersion1 + ", ?1 = 0"

  private static let columnsOfVersion1 = """
    id, key, partition, variant, selection, url, final_url, status, headers, request_time, response_time, stored_at,
    validated_at, expires_at, \(ImageDescription.columns.joined(separator: ", "))
    """
}

extension StoredResponse {
  /// - Parameter hasDecodeMetadata: whether the row contains the columns of `DecodeMetadata`.
  init(_ row: borrowing Row, hasDecodeMetadata: Bool) {
    let key = row.text(1)
    let varyKey = row.text(4)
    self.init(
      id: row.integer(0), key: key, partition: row.text(2), variant: row.text(3), url: row.optionalText(5) ?? key,
      finalURL: row.optionalText(6), status: row.int(7), headers: .init(storedText: row.text(8)),
      varyingHeaders: varyKey.isEmpty ? [:] : .init(storedText: varyKey), requestTime: row.int(9),
      responseTime: row.int(10), storedAt: row.int(11), validatedAt: row.int(12), expiresAt: row.int(13),
      content: ImageDescription(row, from: 14), metadata: hasDecodeMetadata ? DecodeMetadata.read(row, from: 23) : nil)
    isVerified = row.int(22) == 1
  }
}

internal import HTTPTypes

/// The index of the disk tier, `index.sqlite`, version 4.
///
/// - `responses`: a row for each stored response; its file's name follows from `id`, `digest` and `format`. `varyKey`
///   is the varying request fields as text. `url` is NULL where it equals `key`. `used_at` orders eviction,
///   `delivered_at` is when its path was last given to a host (both lag by the flush interval), `allocated` what the
///   file takes on disk. Since version 3: `boot` names the run of the system that wrote the file, and is NULL once the
///   file was found whole in a later one; `checked` (a sum: 1 when every pixel is known to decode, 2 when the original
///   is known to be damaged), `thumbhash` and `color`; and of a variant what it was made of (`source_…`).
/// - `doomed`: files that have no row any more and may not be removed before `due`.
/// - `partials`: temporary files that are the beginning of a response (since version 2). `request` is a digest of what
///   makes the answer differ, `boot` names the run of the system that wrote the file, `allocated` is 0 while somebody
///   writes it.
/// - `totals`: one row, kept by triggers: rows in `responses`, allocated bytes of all tables, and (since version 4) how
///   many of the rows are variants, so that what has to be done about them costs nothing where there are none.
///
/// Every look-up, every filter of `clear` and the choice of what to evict has an index of its own. Text compares by its
/// UTF-8 bytes. Times are Unix seconds.
enum IndexSchema {
  static let version = 4

  static let creation =
    responses + totals + countingOfResponses + countingOfDoomed + partials + "PRAGMA user_version = \(version);"

  /// What makes an older version this one; nil for what is none.
  static func migration(from version: Int) -> String? {
    guard (1..<Self.version).contains(version) else { return nil }
    let migrations = [partials, newDecodingColumns, newCountOfVariants].dropFirst(version - 1)
    return migrations.joined() + "PRAGMA user_version = \(Self.version);"
  }

  /// Of version 3. Rows of before are of no run that is known. What decoding fills is NULL until it does.
  private static let decodingColumns = [
    "boot INTEGER DEFAULT 0", "checked INTEGER", "thumbhash BLOB", "color INTEGER", "source_digest BLOB",
    "source_bytes INTEGER", "source_format TEXT", "source_width INTEGER", "source_height INTEGER",
  ]

  private static let newDecodingColumns =
    decodingColumns.map { "ALTER TABLE responses ADD COLUMN \($0);" }.joined()

  private static let newCountOfVariants = """
    ALTER TABLE totals ADD COLUMN variants INTEGER NOT NULL DEFAULT 0;
    UPDATE totals SET variants = (SELECT count(*) FROM responses WHERE variant > '');
    DROP TRIGGER response_added; DROP TRIGGER response_removed;

    """ + countingOfResponses

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
    CREATE INDEX responses_by_url ON responses(url_hash);
    CREATE INDEX responses_by_host ON responses(host, port);
    CREATE INDEX responses_by_storing ON responses(stored_at);
    CREATE INDEX responses_by_expiry ON responses(expires_at);
    CREATE INDEX responses_by_use ON responses(used_at);
    CREATE TABLE doomed(id INTEGER PRIMARY KEY, file TEXT NOT NULL, allocated INTEGER NOT NULL, due INTEGER NOT NULL);
    CREATE INDEX doomed_by_due ON doomed(due);

    """

  private static let totals = """
    CREATE TABLE totals(entries INTEGER NOT NULL, bytes INTEGER NOT NULL, variants INTEGER NOT NULL DEFAULT 0);
    INSERT INTO totals VALUES (0, 0, 0);

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

  /// The columns that `FileRecord.init(_: Row)` reads, in its order.
  static let holdingColumns = "id, digest, format, allocated, used_at, delivered_at"
}

/// What eviction and clearing need to know of a row.
struct FileRecord: Equatable {
  var id: Int64
  var file: String
  var allocated: Int64
  var usedAt: Int
  var deliveredAt: Int

}

extension FileRecord {
  init(_ row: borrowing Row) {
    let id = row.integer(0)
    self.init(
      id: id, file: FileName(id: id, digest: row.bytes(1), format: row.optionalText(2)).path, allocated: row.integer(3),
      usedAt: row.int(4), deliveredAt: row.int(5))
  }
}

extension StoredResponse {
  /// - Parameter hasFindings: whether the row goes on with the columns of `DecodeMetadata`.
  init(_ row: borrowing Row, hasFindings: Bool) {
    let key = row.text(1)
    let varyKey = row.text(4)
    self.init(
      id: row.integer(0), key: key, partition: row.text(2), variant: row.text(3), url: row.optionalText(5) ?? key,
      finalURL: row.optionalText(6), status: row.int(7), headers: .init(storedText: row.text(8)),
      varyingHeaders: varyKey.isEmpty ? [:] : .init(storedText: varyKey), requestTime: row.int(9),
      responseTime: row.int(10), storedAt: row.int(11), validatedAt: row.int(12), expiresAt: row.int(13),
      mediaType: row.text(14), format: row.optionalText(15), width: row.optionalInt(16), height: row.optionalInt(17),
      frames: row.int(18), orientation: row.int(19), byteCount: row.integer(20), digest: row.bytes(21),
      metadata: hasFindings ? DecodeMetadata.read(row, from: 23) : nil)
    isVerified = row.int(22) == 1
  }
}

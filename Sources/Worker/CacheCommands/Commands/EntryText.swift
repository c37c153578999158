internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Text

/// An entry as a row of a table for people.
enum EntryText {
  static let header = row("SIZE", "AGE", "FRESHNESS", "USES", "LAST USE", "FORMAT", "VARIANTS", "KEY")

  /// - Parameter now: Unix seconds.
  static func row(_ entry: CacheEntry, now: Int) -> String {
    let variants = entry.variants > 0 ? String(entry.variants) : ""
    return row(
      Quantities.size(entry.byteCount), Quantities.duration(now - entry.storedAt), freshness(entry, now: now),
      String(entry.uses), entry.lastUse.map { Quantities.duration(now - $0) } ?? "never", entry.format ?? "",
      variants, name(of: entry))
  }

  static func freshness(_ entry: CacheEntry, now: Int) -> String {
    entry.expiresAt > now
      ? "fresh for \(Quantities.duration(entry.expiresAt - now))"
      : "stale for \(Quantities.duration(now - max(entry.expiresAt, entry.storedAt)))"
  }

  /// The key, the transform of a variant, and what else distinguishes the entry.
  static func name(of entry: CacheEntry) -> String {
    var name = entry.key
    if !entry.variant.isEmpty { name += " \(entry.variant)" }
    if !entry.partition.isEmpty { name += " (credentials \(entry.partition.prefix(8)))" }
    if !entry.url.hasSameBytes(as: entry.key) { name += " (\(entry.url))" }
    if entry.isPinned { name += " (pinned)" }
    return name
  }

  private static func row(
    _ size: String, _ age: String, _ freshness: String, _ uses: String, _ lastUse: String, _ format: String,
    _ variants: String, _ key: String
  ) -> String {
    [
      size.rightAligned(to: 5), age.rightAligned(to: 6), freshness.padded(to: 14), uses.rightAligned(to: 5),
      lastUse.rightAligned(to: 8), format.padded(to: 6), variants.rightAligned(to: 8), key,
    ].joined(separator: "  ")
  }
}

extension JSONWriter {
  /// The members of an entry in a line of JSON.
  mutating func members(of entry: CacheEntry, now: Int) {
    member("key", entry.key)
    member("url", entry.url)
    if !entry.partition.isEmpty { member("partition", entry.partition) }
    if !entry.variant.isEmpty { member("variant", entry.variant) }
    member("bytes", entry.byteCount)
    member("allocated", entry.allocated)
    if let format = entry.format { member("format", format) }
    member("mediaType", entry.mediaType)
    if let width = entry.width { member("width", width) }
    if let height = entry.height { member("height", height) }
    member("storedAt", Timestamp.format(entry.storedAt))
    member("validatedAt", Timestamp.format(entry.validatedAt))
    member("expiresAt", Timestamp.format(max(entry.expiresAt, entry.storedAt)))
    member("fresh", entry.expiresAt > now)
    if let lastUse = entry.lastUse { member("usedAt", Timestamp.format(lastUse)) }
    member("uses", entry.uses)
    member("variants", entry.variants)
    member("pinned", entry.isPinned)
    member("file", entry.file)
  }
}

public import ImageCodec
internal import ImageStore

/// The workers of the cache directory share the number of decodes. Without a peer table, the worker has its own.
extension DiskServices: SharedDecodes {
  public func begin(_ count: Int, limit: Int) -> Bool {
    tier?.peerTable?.beginDecode(count, limit: limit) ?? true
  }

  public func record(_ count: Int) { tier?.peerTable?.recordDecodes(count) }
}

internal import Text

/// What the cache knows an image by, for one set of credentials: what one user may not see another may.
struct CacheIdentity: Hashable {
  let key: ExactString
  let partition: String

  init(key: String, partition: String) {
    self.key = ExactString(key)
    self.partition = partition
  }
}

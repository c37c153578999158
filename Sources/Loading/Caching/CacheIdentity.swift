internal import Text

/// The cache key and the partition of an image. The partition keeps the responses of different credentials apart.
struct CacheIdentity: Hashable {
  let key: ExactString
  let partition: String

  init(key: String, partition: String) {
    (self.key, self.partition) = (ExactString(key), partition)
  }
}

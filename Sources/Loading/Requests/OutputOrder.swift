public import ImageCodec

/// One of several files that a load makes of its image.
public struct OutputOrder: Sendable, Hashable {
  /// The name of the output in the request and in the result.
  public var name: String
  public var rendition: Rendition
  /// Never `pixels`.
  public var delivery: LoadRequest.Delivery
  /// An absolute path to which the file is written.
  public var saveTo: String?
  /// The permissions of that file, whatever the umask is; nil for those of the umask.
  public var mode: UInt16?

  public init(
    name: String, rendition: Rendition, delivery: LoadRequest.Delivery, saveTo: String? = nil, mode: UInt16? = nil
  ) {
    (self.name, self.rendition, self.delivery, self.saveTo, self.mode) = (name, rendition, delivery, saveTo, mode)
  }
}

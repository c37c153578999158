public import ImageCodec
public import ImageStore

extension StoredResponse {
  /// Sets the properties that the content of an image determines. If its header cannot be read, only the format and the
  /// media type.
  public mutating func describe(
    _ content: any ByteSource, format: ImageFormat
  ) throws(ImageHeaderError) {
    self.format = format.rawValue
    mediaType = format.mediaType
    let header = try ImageHeader.read(content, format: format)
    (width, height) = (header.width, header.height)
    (frames, orientation) = (header.frames, header.orientation)
  }
}

/// A spooled body as a source for the image codec. Must be used on the disk thread.
public struct SpoolSource: ByteSource {
  let spool: BodySpool

  public init(spool: BodySpool) { self.spool = spool }

  public var count: Int { Int(spool.length) }

  public func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, count > 0 else { return [] }
    return ((try? spool.bytes(from: Int64(offset), count: count)) ?? [])[...]
  }
}

/// The header of an image of which only the first bytes have arrived.
public enum HeaderPrefix: Sendable, Hashable {
  /// The header that the whole file has.
  case complete(ImageHeader)
  /// The header needs at least so many bytes from the start of the file.
  case needsMore(Int)
  /// The whole file has no readable header.
  case invalid(ImageHeaderError)

  /// Reads the header of content that `Recognition` has recognised as `format`.
  ///
  /// The header is complete if reading it looks at no byte that is missing. A JPEG, or a WebP or AVIF without EXIF at
  /// its end, tells its size, orientation and frames in its first bytes. The frames of a GIF and of an animated PNG are
  /// counted through the whole file.
  ///
  /// - Parameters:
  ///   - prefix: the bytes that have arrived.
  ///   - length: the number of bytes of the whole file, if known.
  public static func read(_ prefix: any ByteSource, ofLength length: Int?, format: ImageFormat) -> HeaderPrefix {
    let source = PrefixSource(prefix, length: length)
    do throws(ImageHeaderError) {
      let header = try ImageHeader.read(source, format: format)
      return source.missing.map { .needsMore($0 + 1) } ?? .complete(header)
    } catch {
      return source.missing.map { .needsMore($0 + 1) } ?? .invalid(error)
    }
  }
}

/// The first bytes of a source. Remembers the first missing byte that was asked for.
private final class PrefixSource: ByteSource {
  private let prefix: any ByteSource
  let count: Int
  private(set) var missing: Int?

  init(_ prefix: any ByteSource, length: Int?) {
    self.prefix = prefix
    // With an unknown length, every offset may exist. Half the range, so that sums of offsets do not overflow.
    count = max(length ?? .max / 2, prefix.count)
  }

  func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    if offset >= prefix.count, offset < self.count, missing == nil { missing = offset }
    return prefix.bytes(at: offset, count: count)
  }
}

internal import ImageCodec

/// Files that contain a file of another format: an icon with a PNG, or a bitmap with a JPEG or a PNG as its pixels.
extension Input {
  /// The contained image, screened as a file of its format; the file itself if it contains none.
  func innermost(_ format: ImageFormat) throws(DecodeError) -> (Input, ImageFormat) {
    switch format {
    case .ico:
      let entry = try icon()
      return entry.isPNG ? try part(from: entry.start, as: .png) : (self, format)
    case .bmp:
      let bitmap = try bitmap()
      switch bitmap.compression {
      case .jpeg: return try part(from: Int(self.bytes.littleEndian(at: 10)), as: .jpeg)
      case .png: return try part(from: Int(self.bytes.littleEndian(at: 10)), as: .png)
      default: return (self, format)
      }
    default: return (self, format)
    }
  }

  func icon() throws(DecodeError) -> ICOHeader.Entry {
    do throws(ImageHeaderError) { return try ICOHeader.largest(in: self) } catch { throw .corrupt(error.description) }
  }

  func header(_ format: ImageFormat) throws(DecodeError) -> ImageHeader {
    do throws(ImageHeaderError) { return try ImageHeader.read(self, format: format) } catch {
      throw .corrupt(error.description)
    }
  }

  private func bitmap() throws(DecodeError) -> BitmapHeader {
    do throws(ImageHeaderError) { return try BitmapHeader(self, at: BMPHeader.start) } catch {
      throw .corrupt(error.description)
    }
  }

  private func part(from start: Int, as format: ImageFormat) throws(DecodeError) -> (Input, ImageFormat) {
    guard start > 0, start < count else { throw .corrupt("the image is truncated") }
    return (try Input(partOf: self, from: start).screened(format), format)
  }
}

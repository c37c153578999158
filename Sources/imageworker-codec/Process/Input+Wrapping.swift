internal import ImageCodec

/// Files that hold a file of another format: an icon whose picture is a PNG, a bitmap whose pixels are a JPEG or a PNG.
extension Input {
  /// The image within, screened as a file of its format is; the file itself where there is none.
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

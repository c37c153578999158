/// An image in a row of the index.
extension ImageDescription {
  /// The columns of `responses` that contain the facts about the image. Version 1 has all of them.
  static let columns = ["media_type", "format", "width", "height", "frames", "orientation", "bytes", "digest"]

  /// - Parameter first: the first of `columns` in the query.
  init(_ row: borrowing Row, from first: Int32) {
    var header = ImageHeader(row, from: first + 1)
    header?.frames = row.int(first + 4)
    header?.orientation = row.int(first + 5)
    self.init(
      header, mediaType: row.text(first), byteCount: row.integer(first + 6), digest: row.bytes(first + 7))
  }

  /// The values of `columns`.
  var values: [any SQLiteValue] {
    [
      mediaType, format?.rawValue, header?.width, header?.height, header?.frames ?? 1, header?.orientation ?? 1,
      byteCount, digest,
    ]
  }
}

extension ImageHeader {
  /// - Parameter first: the first of the columns of the format, the width and the height.
  init?(_ row: borrowing Row, from first: Int32) {
    guard let format = row.format(first) else { return nil }
    self.init(format, width: row.optionalInt(first + 1), height: row.optionalInt(first + 2))
  }
}

extension Row {
  /// Nil also for a format that this version does not know.
  func format(_ column: Int32) -> ImageFormat? { optionalText(column).flatMap(ImageFormat.init) }
}

internal import ImageCodec

/// Decodes the rows of an image.
package protocol RowReader: AnyObject {
  /// The size as it is stored.
  var size: (width: Int, height: Int) { get }
  /// The bands of a row, a byte each.
  var storedBands: Int { get }

  /// Passes the rows above this one, with their numbers, from the top. Once only. A row is valid during the call.
  func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) throws -> Void) throws
}

extension RowReader {
  /// Decodes every pixel.
  package func readAll() throws { try forEachRow(above: size.height) { _, _ in } }
}

/// The rows of an image, or of a part of it: interleaved bytes in memory, or those that a reader decodes.
struct PixelRows {
  private enum Source {
    case memory(PixelMemory)
    case reader(any RowReader)
  }

  private let source: Source
  let bands: Int
  /// The width of the source.
  private let sourceWidth: Int
  /// The part of the source.
  private var part: Transform.Crop
  private var conversion: ProfileConversion?

  var width: Int { part.width }
  var height: Int { part.height }

  private init(_ memory: PixelMemory, width: Int, height: Int) {
    source = .memory(memory)
    (bands, sourceWidth) = (memory.bytes.count / (width * height), width)
    part = Transform.Crop(x: 0, y: 0, width: width, height: height)
  }

  /// A part of the image of the reader, which has not started. Its rows can be read once.
  init(_ reader: some RowReader, _ crop: Transform.Crop) {
    source = .reader(reader)
    (bands, sourceWidth, part) = (reader.storedBands, reader.size.width, crop)
  }

  /// Passes the rows from the top.
  func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard let conversion else { return try forEachStored(body) }
    let converted = try PixelMemory(width * bands)
    try forEachStored {
      conversion.convert($0.baseAddress!, count: width, into: converted.samples)
      try body(UnsafeRawBufferPointer(converted.bytes))
    }
  }

  /// Passes the rows in the colours of the source.
  private func forEachStored(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let (offset, count) = (part.x * bands, part.width * bands)
    switch source {
    case .reader(let reader):
      try reader.forEachRow(above: part.y + part.height) { index, row in
        if index >= part.y { try body(UnsafeRawBufferPointer(start: row + offset, count: count)) }
      }
    case .memory(let memory):
      try withExtendedLifetime(memory) {
        for y in part.y..<(part.y + part.height) {
          let start = y * sourceWidth * bands + offset
          try body(UnsafeRawBufferPointer(rebasing: memory.bytes[start..<(start + count)]))
        }
      }
    }
  }

  /// Converted to sRGB. The profile is ignored if it is nil or cannot be used.
  func inSRGB(from profile: [UInt8]?) -> PixelRows {
    guard let profile else { return self }
    var rows = self
    let hasAlpha = bands.isMultiple(of: 2)
    rows.conversion = ProfileConversion(
      profile, colors: bands - (hasAlpha ? 1 : 0), hasAlpha: hasAlpha, pixels: width * height)
    return rows
  }

  /// A part of these rows.
  func cut(_ crop: Transform.Crop) -> PixelRows {
    var rows = self
    rows.part = Transform.Crop(x: part.x + crop.x, y: part.y + crop.y, width: crop.width, height: crop.height)
    return rows
  }

  /// Passes the rows without alpha, blended onto one colour (0xRRGGBB) as libvips does. Grey stays grey.
  func forEachOpaque(on background: UInt32, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard bands.isMultiple(of: 2) else { return try forEach(body) }
    let colors = [background >> 16 & 255, background >> 8 & 255, background & 255].suffix(bands - 1).map { Int($0) }
    var opaque = [UInt8](repeating: 0, count: width * colors.count)
    try forEach { row in
      for x in 0..<width {
        let alpha = Int(row[x * bands + colors.count])
        for (band, color) in colors.enumerated() {
          opaque[x * colors.count + band] = UInt8((Int(row[x * bands + band]) * alpha + color * (255 - alpha)) / 255)
        }
      }
      try opaque.withUnsafeBytes(body)
    }
  }

  private func copied() throws -> PixelMemory { try PixelMemory(width * height * bands, rows: forEach) }

  /// The same rows in memory, where they can be read more than once.
  func inMemory() throws -> PixelRows {
    PixelRows(try copied(), width: width, height: height)
  }

  /// The rows in another size. Nil if that takes much memory.
  func resized(toWidth newWidth: Int, height newHeight: Int) throws -> PixelRows? {
    if newWidth == width, newHeight == height { return self }
    let (from, to) = ((width, height), (newWidth, newHeight))
    guard Resampler.needsLittleMemory(from: from, to: to) else { return nil }
    let resampler = Resampler(bands.isMultiple(of: 2) ? .alphaLast : .plain, count: bands, from: from, to: to)
    let memory = try PixelMemory(newWidth * newHeight * bands) { take in
      try forEach { try resampler.add($0.bindMemory(to: UInt8.self).baseAddress!, take) }
    }
    return PixelRows(memory, width: newWidth, height: newHeight)
  }

  /// Oriented upright; `orientation` is as in EXIF.
  func oriented(_ orientation: Int) throws -> PixelRows {
    guard (2...8).contains(orientation) else { return self }
    let stored = try copied()
    let isTurned = orientation >= 5
    let (newWidth, newHeight) = isTurned ? (height, width) : (width, height)
    // The steps in the source for a step to the right and a step down in the result.
    let (right, down) = isTurned ? (width * bands, bands) : (bands, width * bands)
    let isMirrored = [2, 3, 6, 7].contains(orientation)
    let isUpsideDown = [3, 4, 7, 8].contains(orientation)
    let result = try PixelMemory(stored.bytes.count)
    withExtendedLifetime(stored) {
      let source = stored.bytes.bindMemory(to: UInt8.self).baseAddress!
      var target = result.bytes.bindMemory(to: UInt8.self).baseAddress!
      for y in 0..<newHeight {
        let row = source + (isUpsideDown ? newHeight - 1 - y : y) * down
        for x in 0..<newWidth {
          let pixel = row + (isMirrored ? newWidth - 1 - x : x) * right
          for band in 0..<bands { target[band] = pixel[band] }
          target += bands
        }
      }
    }
    return PixelRows(result, width: newWidth, height: newHeight)
  }
}

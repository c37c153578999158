internal import CZlib

/// PNG and APNG (PNG, third edition): IHDR and the chunks before the pixels.
package enum PNGHeader {
  private static let maxChunks = 10_000

  /// Whether a colour type permits a bit depth (section 11.2.1).
  package static func exists(color: Int, depth: Int) -> Bool {
    switch color {
    case 0: [1, 2, 4, 8, 16].contains(depth)
    case 3: [1, 2, 4, 8].contains(depth)
    case 2, 4, 6: depth == 8 || depth == 16
    default: false
    }
  }

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let (width, height) = try size(&reader, at: 0)
    let (frames, orientation) = extras(&reader)
    return ImageHeader(.png, width: width, height: height, frames: frames, orientation: orientation)
  }

  /// The size of the PNG that begins at `start`.
  static func size(_ reader: inout HeaderReader, at start: Int) throws(ImageHeaderError) -> (width: Int, height: Int) {
    guard try reader.big32(start + 8) == 13, try reader.name(start + 12) == "IHDR" else {
      throw .impossible("the PNG does not begin with IHDR")
    }
    let (width, height) = (try reader.big32(start + 16), try reader.big32(start + 20))
    guard width <= Int(Int32.max), height <= Int(Int32.max) else {
      throw .impossible("the sides of a PNG must not be longer than 2147483647 pixels")
    }
    let (depth, color) = (try reader.uint8(start + 24), try reader.uint8(start + 25))
    guard exists(color: color, depth: depth) else {
      throw .impossible("the PNG has colour type \(color) with \(depth) bits, which is not a valid combination")
    }
    guard try reader.big32(start + 29) == Int(CRC32.checksum(reader.bytes(start + 12, count: 17))) else {
      throw .impossible("the checksum of the PNG's header is wrong")
    }
    return (width, height)
  }

  /// The number of frames of an animation, and the orientation of an eXIf chunk before the pixels.
  private static func extras(_ reader: inout HeaderReader) -> (frames: Int, orientation: Int) {
    var isAnimated = false
    var orientation: Int?
    var position = 33
    do throws(ImageHeaderError) {
      for _ in 0..<maxChunks {
        let length = try reader.big32(position)
        switch try reader.name(position + 4) {
        case "acTL": isAnimated = true
        case "eXIf" where orientation == nil: orientation = EXIF.orientation(&reader, at: position + 8)
        case "IDAT", "IEND": return (isAnimated ? frames(&reader) : 1, orientation ?? 1)
        default: break
        }
        position += length + 12
      }
    } catch {
      // The size is known; a file that is truncated after it is left to the decoder to reject.
    }
    return (1, orientation ?? 1)
  }

  /// The actual number of frames, whatever acTL says.
  private static func frames(_ reader: inout HeaderReader) -> Int {
    var frames = 0
    do throws(ImageHeaderError) {
      guard var scan = try APNGScan(reader) else { return 1 }
      while try scan.next() != nil { frames += 1 }
    } catch {
      // The decoder stops at the same frame.
      frames += 1
    }
    return max(1, frames)
  }
}

/// The checksum of a PNG chunk (PNG section 5.5).
package enum CRC32 {
  package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return UInt32(truncatingIfNeeded: crc32_z(0, start, z_size_t(bytes.count)))
  }

  static func checksum(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { checksum($0) } }
}

/// GIF (GIF89a): the logical screen, and the pictures, which are counted by skipping their data.
package enum GIFHeader {
  /// What is counted through; frames behind it are not counted.
  private static let longestScan = 64 << 20

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var (width, height) = (try reader.little16(6), try reader.little16(8))
    var position = 13 + colorTableLength(try reader.uint8(10))
    var frames = 0
    do throws(ImageHeaderError) {
      while position < longestScan, let next = try skipBlock(&reader, at: position) {
        if try reader.uint8(position) == 0x2C {
          frames += 1
          // Some writers leave the screen empty or make it too small: it grows with what is laid on it.
          width = max(width, try reader.little16(position + 1) + reader.little16(position + 5))
          height = max(height, try reader.little16(position + 3) + reader.little16(position + 7))
        }
        position = next
      }
    } catch {
      guard width > 0, height > 0 else { throw error }
    }
    return ImageHeader(.gif, width: width, height: height, frames: max(frames, 1))
  }

  /// Whether the file ends within a block. What is too long to be counted through is taken for whole.
  package static func isCut(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    do throws(ImageHeaderError) {
      var position = 13 + colorTableLength(try reader.uint8(10))
      while position < min(longestScan, reader.count), let next = try skipBlock(&reader, at: position) {
        position = next
      }
      return false
    } catch {
      return true
    }
  }

  /// Where the block after the one at `start` begins; nil behind the last.
  private static func skipBlock(_ reader: inout HeaderReader, at start: Int) throws(ImageHeaderError) -> Int? {
    var position: Int
    switch try reader.uint8(start) {
    case 0x21: position = start + 2
    case 0x2C: position = start + 11 + colorTableLength(try reader.uint8(start + 9))
    default: return nil
    }
    while true {
      let length = try reader.uint8(position)
      position += 1 + length
      if length == 0 { return position }
    }
  }

  private static func colorTableLength(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 3 << ((flags & 7) + 1) }
}

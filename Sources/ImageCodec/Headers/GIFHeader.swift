/// GIF (GIF89a): the logical screen, and the pictures, which are counted by skipping their data.
package enum GIFHeader {
  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var scan = try GIFScan(reader)
    var frames = 0
    do throws(ImageHeaderError) {
      while try scan.next() != nil { frames += 1 }
    } catch {
      // The first frame is part of what gives the size, and one that is cut still has its own.
      if frames == 0, scan.width == 0 || scan.height == 0 { throw error }
      frames += 1
    }
    return ImageHeader(.gif, width: scan.width, height: scan.height, frames: max(frames, 1))
  }
}

/// GIF (GIF89a): the logical screen, and the frames, which are counted by skipping their data.
package enum GIFHeader {
  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var scan = try GIFScan(reader)
    var frames = 0
    do throws(ImageHeaderError) {
      while try scan.next() != nil { frames += 1 }
    } catch {
      // The first frame may determine the size; a frame that is truncated still has its own size.
      if frames == 0, scan.width == 0 || scan.height == 0 { throw error }
      frames += 1
    }
    return ImageHeader(.gif, width: scan.width, height: scan.height, frames: max(frames, 1))
  }
}

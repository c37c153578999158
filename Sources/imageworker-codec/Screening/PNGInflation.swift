internal import CZlib

/// How many bytes the image data of a PNG inflates to. None of them is kept.
///
/// Damaged data counts up to the damage, for which libpng will say what it is.
struct PNGInflation {
  private var chunks: PNGChunks
  private let file: UnsafeRawBufferPointer
  private var limit = 0
  private var length = 0
  /// inflateBack wants deflated data without the two bytes that zlib has before it.
  private var headerLeft = 2

  /// Deflate makes of each byte so many at most.
  static let mostOfEachByte = 1032

  init(_ file: UnsafeRawBufferPointer) {
    self.file = file
    chunks = PNGChunks(file)
  }

  /// Ends as soon as it does.
  mutating func exceeds(_ limit: Int) -> Bool {
    self.limit = limit
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32768) { window in
      var stream = z_stream()
      guard czlib_inflate_back_init(&stream, window.baseAddress) == Z_OK else { return }
      defer { inflateBackEnd(&stream) }
      withUnsafeMutablePointer(to: &self) { inflation in
        _ = inflateBack(
          &stream,
          { context, input in PNGInflation.at(context).pointee.takeNext(into: input) }, inflation,
          { context, _, count in PNGInflation.at(context).pointee.add(Int(count)) }, inflation)
      }
    }
    return length > limit
  }

  private static func at(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<PNGInflation> {
    context.unsafelyUnwrapped.assumingMemoryBound(to: PNGInflation.self)
  }

  /// The data of the next chunk that has some; 0 at the end.
  private mutating func takeNext(into input: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) -> UInt32 {
    while let chunk = chunks.next() {
      guard chunk.name == PNGChunks.imageData else { continue }
      let header = min(headerLeft, chunk.content.count)
      headerLeft -= header
      let data = UnsafeRawBufferPointer(rebasing: file[chunk.content.dropFirst(header)])
      guard !data.isEmpty else { continue }
      input?.pointee = data.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return UInt32(data.count)
    }
    return 0
  }

  /// Other than 0 when it is enough.
  private mutating func add(_ count: Int) -> Int32 {
    length += count
    return length > limit ? 1 : 0
  }
}

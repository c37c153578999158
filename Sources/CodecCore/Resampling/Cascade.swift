package import ImageCodec

/// The order in which the pictures of a set are made, and from what: a picture that is clearly smaller than another
/// is made from that one. A pure value.
package struct Cascade {
  package struct Step: Hashable {
    /// The position of the picture in the set.
    package let index: Int
    /// The picture from which it is made; nil if it is made from the file.
    package let parent: Int?
    /// Whether others are made from it.
    package fileprivate(set) var isParent = false
  }

  /// A picture comes after that from which it is made.
  package private(set) var steps: [Step] = []

  /// The minimum reduction from one picture to the next, for which two steps look as one (`StoredLayout`).
  private static let minReduction = 1.5

  /// - Parameter layouts: nil for pictures that neither serve others nor can be made from them.
  package init(_ layouts: [StoredLayout?]) {
    let layouts = layouts.map { $0?.isWhole == true ? $0 : nil }
    func area(_ index: Int) -> Int { layouts[index].map { $0.scaledWidth * $0.scaledHeight } ?? 0 }
    for index in layouts.indices.sorted(by: { (area($0), $1) > (area($1), $0) }) {
      let parent = layouts[index].flatMap { layout in
        steps.lastIndex { step in layouts[step.index].map { Self.serves($0, for: layout) } ?? false }
      }
      if let parent { steps[parent].isParent = true }
      steps.append(Step(index: index, parent: parent.map { steps[$0].index }))
    }
  }

  /// The number of pictures that are made from the file.
  package var readers: Int { steps.count { $0.parent == nil } }

  /// An enlarged picture has no more detail than the file, and serves only its equals.
  private static func serves(_ larger: StoredLayout, for layout: StoredLayout) -> Bool {
    let across = Double(larger.scaledWidth) / Double(layout.scaledWidth)
    let down = Double(larger.scaledHeight) / Double(layout.scaledHeight)
    return (across, down) == (1, 1) || !larger.isEnlarged && min(across, down) >= minReduction
  }
}

extension [CodecRequest.Part] {
  /// The part, of those with these positions, that has the same file: only the box differs, and the geometry does not,
  /// as for two boxes around a small image. Nil without one.
  package func part(like index: Int, among made: some Sequence<Int>, geometry: (Int) -> Geometry?) -> Int? {
    made.first { other in
      var rendition = self[other].rendition
      rendition.transform.width = self[index].rendition.transform.width
      rendition.transform.height = self[index].rendition.transform.height
      return rendition == self[index].rendition && geometry(other) == geometry(index)
    }
  }
}

extension Rendition {
  /// The file of the highest quality that fits, and the quality if the format has one.
  ///
  /// - Parameter encode: gets nil for a file without loss.
  package func encoded(
    _ format: ImageFormat, _ maxBytes: Int, mayBeLossless: Bool, _ encode: (Int?) throws -> EncodedFile?
  ) throws -> (file: EncodedFile, quality: Int?)? {
    if mayBeLossless || !format.hasQuality {
      guard let file = try encode(nil) else { return nil }
      if file.bytes.count <= maxBytes { return (file, nil) }
      if !format.hasQuality { throw tooLarge(file.bytes.count, maxBytes) }
    }
    var search = QualitySearch(maxBytes: maxBytes, from: transform.quality ?? format.usualQuality, downTo: minQuality)
    var best: (EncodedFile, Int)?
    var smallest = (bytes: Int.max, quality: 0)
    while let quality = search.next {
      guard let file = try encode(quality) else { return nil }
      if search.add(byteCount: file.bytes.count) { best = (file, quality) }
      if file.bytes.count < smallest.bytes { smallest = (file.bytes.count, quality) }
    }
    guard let best else { throw tooLarge(smallest.bytes, maxBytes, " at quality \(smallest.quality)") }
    return best
  }

  /// The file of an image without its metadata but for the orientation and the fields to keep, if it fits.
  package func stripped(
    _ file: UnsafeRawBufferPointer, _ format: ImageFormat, orientation: Int
  ) throws -> EncodedFile {
    var fields: [EXIFField: EXIFValue] = [:]
    if !transform.metadata.isEmpty {
      fields = EXIFReader.read(file: file, format).filter { transform.metadata.contains($0.key) }
    }
    if orientation != 1 { fields[.orientation] = .number(Double(orientation)) }
    let stripped = try StrippedFile.make(file, format, exif: EXIFWriter.data(fields))
    if let maxBytes, stripped.bytes.count > maxBytes { throw tooLarge(stripped.bytes.count, maxBytes) }
    return stripped
  }

  private func tooLarge(_ bytes: Int, _ maxBytes: Int, _ quality: String = "") -> DecodeError {
    .tooLarge(
      "the file has \(bytes) bytes\(quality), and maxBytes is \(maxBytes)",
      ErrorFigures(bytes: Int64(bytes), limit: Int64(maxBytes)))
  }
}

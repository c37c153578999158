/// The references between the items of a HEIC (`iref`, ISO/IEC 14496-12 section 8.11.12).
package struct HEIFReferences {
  private struct Reference {
    let type: [UInt8]
    let from: Int
    let targets: [Int]
  }

  /// The place of the references in the file, behind the header of the box.
  package let range: Range<Int>
  private let primary: Int?
  private let idLength: Int
  private var references: [Reference] = []

  private static let maxLength = 1 << 20
  private static let description = Array("cdsc".utf8)
  /// A type that readers ignore.
  private static let ignored = Array("skip".utf8)

  /// Nil if the file has no references, or if they are damaged.
  package init?(_ source: any ByteSource) {
    var reader = HeaderReader(source)
    guard let found = try? Self(&reader) else { return nil }
    self = found
  }

  private init?(_ reader: inout HeaderReader) throws(ImageHeaderError) {
    var boxes = BoxSequence(from: 0, to: reader.count)
    var (primary, list) = (Int?.none, BoxSequence.Box?.none)
    while let box = try boxes.next(&reader) {
      guard box.name == "meta" else { continue }
      var inner = BoxSequence(in: box, skipping: 4)
      while let part = try inner.next(&reader) {
        if part.name == "pitm" { primary = try HEIFItem.primary(&reader, in: part) }
        if part.name == "iref", list == nil { list = part }
      }
      break
    }
    guard let list, list.content.count > 4, list.content.count < Self.maxLength else { return nil }
    self.primary = primary
    range = (list.content.lowerBound + 4)..<list.content.upperBound
    idLength = try reader.uint8(list.content.lowerBound) == 0 ? 2 : 4
    var position = range.lowerBound
    while position < range.upperBound {
      // A length of 1 means that another of 64 bits follows. Other lengths are ignored, as in libheif: the next
      // reference follows the last target.
      guard try reader.big32(position) != 1 else { return nil }
      let count = try reader.big16(position + 8 + idLength)
      var ids: [Int] = []
      for index in 0..<count { ids.append(try id(&reader, position + 10 + idLength * (index + 1))) }
      references.append(
        Reference(
          type: try reader.bytes(position + 4, count: 4), from: try id(&reader, position + 8), targets: ids))
      position += length(targets: count)
    }
    guard position == range.upperBound else { return nil }
  }

  private func id(_ reader: inout HeaderReader, _ offset: Int) throws(ImageHeaderError) -> Int {
    idLength == 2 ? try reader.big16(offset) : try reader.big32(offset)
  }

  /// The length of a reference.
  private func length(targets: Int) -> Int { 10 + idLength * (targets + 1) }

  /// The items with a reference to another.
  func items(referringTo target: Int, as type: String) -> [Int] {
    references.filter { $0.type.elementsEqual(type.utf8) && $0.targets.contains(target) }.map(\.from)
  }

  /// The references in as many bytes, but with metadata that describes one image, preferably the primary one. Nil if
  /// they are so already.
  ///
  /// In photos of iOS 18, EXIF describes the primary image and a tone-mapped one (`tmap`), and libheif before 1.19
  /// refuses that (libvips issue 4169). The references of the second image leave their place to a reference that is
  /// ignored. If it has none, the metadata is left without an image, and thus unread.
  package var describingOneImage: [UInt8]? {
    let isShared = { (reference: Reference) in reference.type == Self.description && reference.targets.count > 1 }
    guard references.contains(where: isShared) else { return nil }
    var others: Set<Int> = []
    var single = references.map { reference in
      guard isShared(reference) else { return reference }
      let target = reference.targets.first { $0 == primary } ?? reference.targets[0]
      others.formUnion(reference.targets.filter { $0 != target })
      return Reference(type: reference.type, from: reference.from, targets: [target])
    }
    single.removeAll { others.contains($0.from) }
    let left = range.count - single.reduce(0) { $0 + length(targets: $1.targets.count) }
    let targets = (left - length(targets: 0)) / idLength
    guard left >= length(targets: 0), left == length(targets: targets) else {
      return bytes(
        of: references.map { reference in
          Reference(
            type: isShared(reference) ? Self.ignored : reference.type, from: reference.from,
            targets: reference.targets)
        })
    }
    single.append(Reference(type: Self.ignored, from: 0, targets: [Int](repeating: 0, count: targets)))
    return bytes(of: single)
  }

  private func bytes(of references: [Reference]) -> [UInt8] {
    func integer(_ value: Int, _ length: Int) -> [UInt8] {
      (0..<length).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    return references.flatMap { reference in
      integer(length(targets: reference.targets.count), 4) + reference.type + integer(reference.from, idLength)
        + integer(reference.targets.count, 2) + reference.targets.flatMap { integer($0, idLength) }
    }
  }
}

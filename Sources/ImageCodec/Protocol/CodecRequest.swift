/// A request to a decoder process.
package struct CodecRequest: Sendable, Hashable {
  package enum Output: Sendable, Hashable {
    case encoded, pixels, check, placeholder
    case facts(FactSet)
    case preview(maxSide: Int)
    /// The parts are requests for single files, and tell the limits of these.
    case renditions([Part], FactSet, checks: Bool)
  }

  /// A file of a set.
  package struct Part: Sendable, Hashable {
    package var rendition: Rendition
    package var orientation: Int
  }

  package var format: ImageFormat
  package var transform: Transform
  package var output: Output
  package var wantsPlaceholder: Bool
  package var maxPixels: Int
  /// The EXIF orientation (1 to 8) to apply to the pixels that the image library returns.
  package var orientation: Int

  package init(
    format: ImageFormat, transform: Transform, output: Output, wantsPlaceholder: Bool, maxPixels: Int, orientation: Int
  ) {
    (self.format, self.transform, self.output) = (format, transform, output)
    (self.wantsPlaceholder, self.maxPixels, self.orientation) = (wantsPlaceholder, maxPixels, orientation)
  }

  init(_ task: DecodeTask) {
    (format, transform, maxPixels) = (task.header.format, task.transform, task.maxPixels)
    wantsPlaceholder = task.wantsPlaceholder
    let header = task.header
    /// Libraries return HEIC and JPEG XL already oriented, and other formats as stored.
    func orientation(_ transform: Transform) -> Int {
      switch ([.heic, .jxl].contains(header.format), transform.isOriented) {
      case (false, true): header.orientation
      case (true, false): Orientation.exifValue(undoing: header.orientation)
      default: 1
      }
    }
    self.orientation = orientation(task.transform)
    switch task.output {
    case .encoded: output = .encoded
    case .pixels: output = .pixels
    case .check: output = .check
    case .placeholder: output = .placeholder
    case .facts(let facts): output = .facts(facts)
    case .preview(_, let maxSide): output = .preview(maxSide: maxSide)
    case .renditions(let set, _):
      let parts = set.renditions.map { Part(rendition: $0, orientation: orientation($0.transform)) }
      output = .renditions(parts, set.facts, checks: set.checks)
    }
  }

  /// The requests for the files of a set alone; empty for other requests.
  package var parts: [CodecRequest] {
    guard case .renditions(let parts, _, _) = output else { return [] }
    return parts.map { part in
      CodecRequest(
        format: format, transform: part.rendition.transform, output: .encoded, wantsPlaceholder: false,
        maxPixels: maxPixels, orientation: part.orientation)
    }
  }

  package var message: CodecMessage {
    var message = CodecMessage()
    message["format"] = format.rawValue
    message["transform"] = transform.canonical
    message[number: "maxPixels"] = maxPixels
    message[number: "placeholder"] = wantsPlaceholder ? 1 : 0
    message[number: "orientation"] = orientation
    switch output {
    case .encoded: message["output"] = "encoded"
    case .pixels: message["output"] = "pixels"
    case .check: message["output"] = "check"
    case .placeholder: message["output"] = "placeholder"
    case .facts(let facts):
      message["output"] = "facts"
      message[number: "facts"] = facts.rawValue
    case .preview(let maxSide):
      message["output"] = "preview"
      message[number: "maxSide"] = maxSide
    case .renditions(let parts, let facts, let checks):
      message["output"] = "renditions"
      message[number: "facts"] = facts.rawValue
      message[number: "check"] = checks ? 1 : 0
      message[number: "count"] = parts.count
      for (index, part) in parts.enumerated() {
        message["transform\(index)"] = part.rendition.transform.canonical
        message[number: "orientation\(index)"] = part.orientation
        message[number: "maxBytes\(index)"] = part.rendition.maxBytes
        message[number: "minQuality\(index)"] = part.rendition.minQuality
        if part.rendition.isStripped { message[number: "strip\(index)"] = 1 }
      }
    }
    return message
  }

  package init?(_ message: CodecMessage) {
    guard let format = message["format"].flatMap(ImageFormat.init(rawValue:)),
      let transform = message["transform"].flatMap(Transform.init(canonical:)),
      let maxPixels = message[number: "maxPixels"], let wantsPlaceholder = message[number: "placeholder"],
      let orientation = message[number: "orientation"], (1...8).contains(orientation)
    else { return nil }
    self.orientation = orientation
    (self.format, self.transform, self.maxPixels) = (format, transform, maxPixels)
    self.wantsPlaceholder = wantsPlaceholder == 1
    switch message["output"] {
    case "encoded": output = .encoded
    case "pixels": output = .pixels
    case "check": output = .check
    case "placeholder": output = .placeholder
    case "facts":
      guard let facts = message[number: "facts"] else { return nil }
      output = .facts(FactSet(rawValue: facts))
    case "preview":
      guard let maxSide = message[number: "maxSide"], maxSide > 0 else { return nil }
      output = .preview(maxSide: maxSide)
    case "renditions":
      guard let facts = message[number: "facts"], let checks = message[number: "check"],
        let count = message[number: "count"], count <= RenditionSet.maxCount
      else { return nil }
      let parts = (0..<count).compactMap { Part(message, $0) }
      guard parts.count == count else { return nil }
      output = .renditions(parts, FactSet(rawValue: facts), checks: checks == 1)
    default: return nil
    }
  }
}

extension CodecRequest.Part {
  fileprivate init?(_ message: CodecMessage, _ index: Int) {
    guard let transform = message["transform\(index)"].flatMap(Transform.init(canonical:)),
      let orientation = message[number: "orientation\(index)"], (1...8).contains(orientation),
      let minQuality = message[number: "minQuality\(index)"]
    else { return nil }
    self.orientation = orientation
    rendition = Rendition(
      transform: transform, maxBytes: message[number: "maxBytes\(index)"], minQuality: minQuality)
    rendition.isStripped = message[number: "strip\(index)"] == 1
  }
}

/// A request to a decoder process.
package struct CodecRequest: Sendable, Hashable {
  package enum Output: Sendable, Hashable {
    case encoded, pixels, check, placeholder
    case facts(FactSet)
    case preview(maxSide: Int)
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
    // Libraries return HEIC and JPEG XL already oriented, and other formats as stored.
    orientation =
      switch ([.heic, .jxl].contains(format), task.transform.isOriented) {
      case (false, true): task.header.orientation
      case (true, false): Orientation.exifValue(undoing: task.header.orientation)
      default: 1
      }
    switch task.output {
    case .encoded: output = .encoded
    case .pixels: output = .pixels
    case .check: output = .check
    case .placeholder: output = .placeholder
    case .facts(let facts): output = .facts(facts)
    case .preview(_, let maxSide): output = .preview(maxSide: maxSide)
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
    default: return nil
    }
  }
}

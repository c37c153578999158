/// A command of the worker to the parent of a decoder: one byte.
package enum DecoderCommand: UInt8 {
  /// Start a child that decodes several images; the socket of its tasks comes with the byte.
  case start = 1
  /// Kill the child.
  case kill
  /// Start a child that decodes one image.
  case startForOne
}

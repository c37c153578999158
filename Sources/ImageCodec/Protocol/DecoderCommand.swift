/// A command of the worker to the parent of a decoder: one byte.
package enum DecoderCommand: UInt8 {
  /// Start a child; the socket of its tasks comes with the byte.
  case start = 1
  /// Kill the child.
  case kill
}

internal import Platform

/// The location of the decoder's executable.
enum DecoderExecutable {
  static let name = "imageworker-codec"

  /// Returns the decoder beside the running executable, whatever that is called. Nil if it does not exist.
  static func find() -> String? {
    guard let executable = pathOfThisExecutable(), let slash = executable.lastIndex(of: "/") else { return nil }
    let path = "\(executable[...slash])\(name)"
    return access(path, X_OK) == 0 ? path : nil
  }
}

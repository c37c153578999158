internal import Platform

/// The location of the decoder's executable.
enum DecoderExecutable {
  static let name = "imageworker-codec"

  /// Returns the decoder beside the running executable, whatever that is called. Nil if it does not exist.
  static func find() -> String? {
    guard let own = pathOfThisExecutable(), let slash = own.lastIndex(of: "/") else { return nil }
    let path = "\(own[...slash])\(name)"
    return access(path, X_OK) == 0 ? path : nil
  }
}

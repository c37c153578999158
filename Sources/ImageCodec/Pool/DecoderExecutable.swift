internal import Platform

/// Where the decoder's program is.
enum DecoderExecutable {
  static let name = "imageworker-codec"

  /// Beside the program that runs, whatever it is called. nil when it is not there.
  static func find() -> String? {
    guard let own = pathOfThisExecutable(), let slash = own.lastIndex(of: "/") else { return nil }
    let path = "\(own[...slash])\(name)"
    return access(path, X_OK) == 0 ? path : nil
  }
}

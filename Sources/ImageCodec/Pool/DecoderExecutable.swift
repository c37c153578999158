internal import Platform

/// The location of the decoder's executable.
public enum DecoderExecutable {
  public static let name = "imageworker-codec"

  /// The message for a missing decoder.
  public static let missing = "there must be an executable file \(name) beside the worker"

  /// Returns the decoder beside the running executable, whatever that is called. Nil if it does not exist.
  public static func find() -> String? {
    guard let executable = pathOfThisExecutable(), let slash = executable.lastIndex(of: "/") else { return nil }
    let path = "\(executable[...slash])\(name)"
    var status = stat()
    let isFile = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    return isFile && access(path, X_OK) == 0 ? path : nil
  }
}

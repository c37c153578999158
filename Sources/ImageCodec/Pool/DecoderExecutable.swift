internal import Platform

/// The location of the decoders' executables.
public enum DecoderExecutable {
  /// Returns the decoder of every format beside the running executable, whatever that is called.
  public static func find() throws(DecodeError) -> String { try find(for: .all) }

  /// The message for a decoder that is missing; nil if none is.
  public static var missing: String? {
    for libraries in [DecoderLibraries.plain, .all] {
      if path(of: libraries.program) == nil { return message(libraries.program) }
    }
    return nil
  }

  static func find(for libraries: DecoderLibraries) throws(DecodeError) -> String {
    guard let path = path(of: libraries.program) else { throw .unavailable(message(libraries.program)) }
    return path
  }

  private static func message(_ name: String) -> String { "there must be an executable file \(name) beside the worker" }

  private static func path(of name: String) -> String? {
    guard let executable = pathOfThisExecutable(), let slash = executable.lastIndex(of: "/") else {
      return nil
    }
    let path = "\(executable[...slash])\(name)"
    var status = stat()
    let isFile = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    return isFile && access(path, X_OK) == 0 ? path : nil
  }
}

internal import LineRPC

/// The paths of a host in requests: the targets of `saveTo`, the files of `store`, and those of traces.
enum RequestPaths {
  struct Path: Equatable {
    let text: String
    /// Whether the worker reads the file.
    let isContent: Bool
  }

  /// The absolute paths in a line, which is a request or a batch.
  static func all(in line: JSON) -> [Path] {
    var found: [Path] = []
    _ = replacing(in: line) { path in
      found.append(path)
      return path.text
    }
    return found
  }

  /// The line with each path replaced by the result of `transform`.
  static func replacing(in line: JSON, _ transform: (Path) -> String) -> JSON {
    switch line {
    case .array(let calls): .array(calls.map { replacing(in: $0, transform) })
    case .object(let call):
      .object(
        call.mapValues { name, value in
          guard name == "params", case .object(let params) = value else { return value }
          return .object(replacing(inParams: params, of: call["method"], transform))
        })
    default: line
    }
  }

  /// The line with the worker's own paths in it (`WorkerPaths`) as they are in this process.
  static func localized(_ line: JSON, _ paths: WorkerPaths) -> JSON {
    switch line {
    case .array(let calls): .array(calls.map { localized($0, paths) })
    case .object(let call):
      .object(
        call.mapValues { name, value in
          guard name == "params", case .object(let params) = value else { return value }
          return .object(
            params.mapValues { name, value in
              guard name == "path" || name == "saveTo", case .string(let text) = value else { return value }
              return .string(paths.local(text))
            })
        })
    default: line
    }
  }

  private static func replacing(
    inParams params: JSONObject, of method: JSON?, _ transform: (Path) -> String
  ) -> JSONObject {
    let (isStore, isTrace) = (method == .string("store"), method == .string("trace"))
    return params.mapValues { name, value in
      guard name == "saveTo" || name == "path" && (isStore || isTrace), case .string(let text) = value,
        text.hasPrefix("/")
      else { return value }
      return .string(transform(Path(text: text, isContent: name == "path" && isStore)))
    }
  }
}

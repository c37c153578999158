internal import LineRPC
internal import Loading

/// The OpenRPC document of the protocol, `protocol/openrpc.json`, which is embedded in the program.
public enum ProtocolDocument {
  /// The output of `--describe`.
  public static var text: String { String(decoding: PackageResources.openrpc_json, as: UTF8.self) }

  /// The advice if many loads fail with this kind of error: `x-errors[].hint`.
  static func hint(for kind: LoadError.Kind) -> String? { hints[kind.rawValue] }

  private static let hints: [String: String] = {
    guard case .object(let document)? = try? JSON(parsing: PackageResources.openrpc_json),
      case .array(let errors)? = document["x-errors"]
    else {
      assertionFailure("the embedded document must have x-errors")
      return [:]
    }
    return errors.reduce(into: [:]) { hints, error in
      guard case .object(let members) = error, case .string(let kind)? = members["kind"],
        case .string(let hint)? = members["hint"]
      else { return }
      hints[kind] = hint
    }
  }()
}

internal import LineRPC
internal import Loading

/// The advice for each kind of error if many loads fail with it: `x-errors[].hint` of `protocol/openrpc.json`.
enum FailureHints {
  static func hint(for kind: LoadError.Kind) -> String? { all[kind.rawValue] }

  private static let all: [String: String] = {
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

/// What `--describe` prints.
public enum Describe {
  /// The protocol as an OpenRPC document: `protocol/openrpc.json`, built into the program.
  public static var document: String { String(decoding: PackageResources.openrpc_json, as: UTF8.self) }
}

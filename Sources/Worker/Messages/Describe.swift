/// The output of `--describe`.
public enum Describe {
  /// The OpenRPC document of the protocol, `protocol/openrpc.json`, which is embedded in the program.
  public static var document: String { String(decoding: PackageResources.openrpc_json, as: UTF8.self) }
}

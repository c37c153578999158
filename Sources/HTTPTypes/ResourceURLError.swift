/// The reason why a text is not a URL that can be loaded. `description` quotes nothing secret, so an error may show it.
public struct ResourceURLError: Error, Hashable, CustomStringConvertible {
  public enum Kind: Sendable, Hashable {
    case empty, tooLong, controlCharacter, noScheme, unsupportedScheme, noAuthority, userInfo, host, port
  }

  public let kind: Kind
  public let description: String

  init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }
}

internal import Platform

/// The configuration of the fonts for text in SVG.
public enum FontConfiguration {
  private static let ofSystem = "/etc/fonts/fonts.conf"

  /// The file that a release brings, if the system has none.
  static let inRelease = access(ofSystem, R_OK) == 0 ? nil : pathInRelease("share/fonts/fonts.conf")

  /// The file that decoders use; nil if there is none, and text is drawn as boxes.
  public static let path = access(ofSystem, R_OK) == 0 ? ofSystem : inRelease
}

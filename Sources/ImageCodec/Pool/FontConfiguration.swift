internal import Platform

/// The configuration of the fonts for text in SVG.
public enum FontConfiguration {
  private static let ofSystem = "/etc/fonts/fonts.conf"

  /// The file that decoders use: that of the system, else that of a release. Nil if there is none, and text is drawn as
  /// boxes.
  public static var path: String? {
    access(ofSystem, R_OK) == 0 ? ofSystem : pathInRelease("share/fonts/fonts.conf")
  }
}

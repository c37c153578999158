internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import Platform

extension Download {
  /// The settings of a download, and the functions that it calls.
  struct Configuration: Sendable {
    /// Whether the body may be something else than an image.
    var acceptsAnything: Bool
    /// The header fields of the host's request.
    var requestHeaders: HeaderFields
    /// The range that was requested, unless it is the rest of a partial body.
    var firstRange: FirstRange?
    /// The largest number of bytes that a whole body may have.
    var maxBytes: Int64 = .max
    /// The number of bytes of the body that suffice, for a text that is kept in memory; nil for an image.
    var lengthOfPrefix: Int?
    /// Opens a sink for a large body. The last parameter is called when a full sink has room again.
    var makeSink:
      @Sendable (ResponseHead, PartialResponse?, _ continuing: SpooledBody?, @escaping @Sendable () -> Void) -> BodySink
    /// Called with a partial body that is not continued.
    var discard: @Sendable (Body) -> Void
    /// The header field by which the server refuses the use of the image; nil if none does.
    var refusal: @Sendable (ResponseHead) -> String? = { _ in nil }
    /// Called with the target of a redirect. The transfer is held until it is resumed.
    var onRedirect: (@Sendable (_ target: String) -> Void)?
    /// Called when the head of a response has arrived.
    var onAnswer: (@Sendable (ResponseHead) -> Void)?
    var onProgress: @Sendable (_ received: Int64, _ total: Int64?) -> Void
    /// Called once when the header of the image is known, if that was requested. The transfer pauses then.
    var onHeader: (@Sendable (ArrivedHeader) -> Void)?
    /// Called when a preview may be worth making.
    var onScan: (@Sendable (ArrivingImage) -> Void)?
    var onEnd: @Sendable (Outcome) -> Void
    /// Unix seconds.
    var unixTime: @Sendable () -> Int
    var now: @Sendable () -> Instant = { .now }
  }
}

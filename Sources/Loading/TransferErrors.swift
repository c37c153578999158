internal import HTTPTransport

extension LoadError {
  /// What a transfer's failure is to a load.
  init(_ error: TransferError) {
    let kinds: [TransferError.Kind: Kind] = [
      .resolve: .resolve, .connect: .connect, .tls: .tls, .timeout: .timeout, .redirects: .redirects,
      .truncated: .truncated, .tooLarge: .tooLarge, .blockedAddress: .blockedAddress, .cancelled: .cancelled,
    ]
    self.init(kinds[error.kind] ?? .network, error.message)
    phase = error.phase.flatMap { Phase(rawValue: $0.rawValue) }
  }
}

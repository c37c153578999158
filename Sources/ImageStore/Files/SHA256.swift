internal import CCrypto

/// An incremental SHA-256 (FIPS 180-4).
public struct SHA256: ~Copyable {
  private let context: OpaquePointer

  // Unsafe: set once; an EVP_MD is immutable and may be shared between threads.
  nonisolated(unsafe) private static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

  public init() {
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex2(context, Self.algorithm, nil) == 1 else {
      fatalError("libcrypto has no SHA-256")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  /// Returns the 32-byte digest and resets the hash.
  public mutating func finish() -> [UInt8] {
    let digest = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
      count = 32
    }
    EVP_DigestInit_ex2(context, nil, nil)
    return digest
  }

  public static func digest(of bytes: [UInt8]) -> [UInt8] {
    var hash = SHA256()
    hash.update(bytes)
    return hash.finish()
  }
}

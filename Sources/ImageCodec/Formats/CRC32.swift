internal import CZlib

/// The checksum of a PNG chunk (PNG section 5.5).
package enum CRC32 {
  package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return UInt32(truncatingIfNeeded: crc32_z(0, start, z_size_t(bytes.count)))
  }

  static func checksum(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { checksum($0) } }
}

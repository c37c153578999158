/// FNV-1a of bytes: the same in every process and version, unlike `Hasher`. Not resistant to deliberate collisions.
public struct FNV1a {
  public var value: UInt64 = 0xcbf2_9ce4_8422_2325

  @inlinable public init() {}

  @inlinable public mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }

  @inlinable public mutating func combine(_ bytes: some Sequence<UInt8>) {
    // Several times as fast for a text.
    let isDone: Void? = bytes.withContiguousStorageIfAvailable { bytes in for byte in bytes { combine(byte) } }
    if isDone == nil { for byte in bytes { combine(byte) } }
  }

  @inlinable public static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash = FNV1a()
    hash.combine(bytes)
    return hash.value
  }
}

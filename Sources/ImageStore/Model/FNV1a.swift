/// FNV-1a of the text's bytes: the same in every process and version.
func fnv1a(_ text: String) -> Int64 { fnv1a(text.utf8) }

func fnv1a(_ bytes: some Sequence<UInt8>) -> Int64 {
  var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
  return Int64(bitPattern: hash)
}

internal import ImageCodec
internal import Platform

/// The numbers of transfers, connections and files for which the file descriptors of the process suffice.
///
/// Each transfer counts as six descriptors: two connections, one of which may be idle; two files, one of which belongs
/// to a complete body that is being written to disk; and two for short-lived sockets, such as a name lookup or a
/// connection attempt to a second address.
struct DescriptorBudget: Equatable {
  /// The maximum number of concurrent transfers.
  let transfers: Int
  /// The maximum number of open connections, including idle ones.
  var connections: Int { 2 * transfers }
  /// The maximum number of complete bodies that are being written to disk.
  var finishing: Int { transfers }

  /// Reserves 40 descriptors for the streams, the index, locks and files that are read, and four for each decoder: its
  /// two sockets, the source and the output. The reserve is at most half of all descriptors.
  ///
  /// - Parameter descriptors: the maximum for the process.
  init(descriptors: Int, decoders: Int) {
    let reserve = min(40 + 4 * decoders, descriptors / 2)
    transfers = max(1, (descriptors - reserve) / 6)
  }

  /// The budget under the present limit of open files (RLIMIT_NOFILE), with one decoder per processor.
  static var current: DescriptorBudget {
    DescriptorBudget(descriptors: descriptorLimit() ?? .max, decoders: Processors.count)
  }
}

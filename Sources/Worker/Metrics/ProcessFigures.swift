internal import Platform

/// The resources that this process uses.
struct ProcessFigures: Sendable {
  /// The processor time of all threads, without that of the decoder processes.
  var processorSeconds: Double
  var residentBytes: Int64
  /// nil if the system does not tell it.
  var openDescriptors: Int?
  var maxDescriptors: Int?

  /// Reads them from the system. Takes longer the more descriptors are open.
  static func current() -> ProcessFigures {
    ProcessFigures(
      processorSeconds: Platform.processorSeconds(), residentBytes: Platform.residentBytes(),
      openDescriptors: openDescriptorCount(), maxDescriptors: descriptorLimit())
  }
}

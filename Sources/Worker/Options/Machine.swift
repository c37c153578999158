internal import Platform

/// The properties of a machine on which the limits of a worker depend.
struct Machine: Sendable {
  var processors: Int
  /// The soft limit of open files (RLIMIT_NOFILE).
  var descriptors: Int

  /// This machine, with the present limit of the process.
  static var current: Machine { Machine(processors: Processors.count, descriptors: descriptorLimit() ?? .max) }

  /// The budget with one decoder per processor.
  var descriptorBudget: DescriptorBudget { DescriptorBudget(descriptors: descriptors, decoders: processors) }
}

/// The C library of the system, re-exported, and what differs between systems. No other module has platform conditions.
#if canImport(Darwin)
  @_exported public import Darwin
#else
  @_exported public import Glibc
#endif

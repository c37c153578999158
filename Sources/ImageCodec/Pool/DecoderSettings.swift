/// Bounds of the pool of decoder processes.
public struct DecoderSettings: Sendable, Hashable {
  /// Most processes at once, at least 1.
  public var count: Int
  /// For one decode; then its process is killed.
  public var timeout: Duration
  /// nil looks for `imageworker-codec` beside the running executable.
  public var executable: String?
  /// Most pixels that are being decoded at once, over all processes. A larger image is decoded alone.
  public var pixelBudget: Int
  /// Bytes of memory that one process may have.
  public var memoryLimit: Int
  /// A process that had nothing to do for so long goes away.
  public var idleTime: Duration
  /// After so many a process is replaced by a new one.
  public var decodesPerProcess: Int

  public init(
    count: Int, timeout: Duration = .seconds(10), executable: String? = nil, pixelBudget: Int = 100_000_000,
    memoryLimit: Int = 2 << 30, idleTime: Duration = .seconds(30), decodesPerProcess: Int = 1000
  ) {
    (self.count, self.timeout, self.executable) = (count, timeout, executable)
    (self.pixelBudget, self.memoryLimit) = (pixelBudget, memoryLimit)
    (self.idleTime, self.decodesPerProcess) = (idleTime, decodesPerProcess)
  }
}

/// What the pool has done so far, and what it is.
public struct DecoderStatistics: Sendable, Hashable {
  /// Processes there are, busy or not.
  public var running = 0
  public var decoded = 0
  public var failed = 0
  /// Processes that ended in the middle of a decode.
  public var crashed = 0
  public var timedOut = 0
  /// What is in force in the decoders, of `noNewPrivileges`, `rlimits`, `landlock` and `seccomp`. Empty before the
  /// first.
  public var sandbox: [String] = []

  public init() {}
}

/// The limits of the decoder pool.
public struct DecoderSettings: Sendable, Hashable {
  /// The maximum number of processes, at least 1.
  public var count: Int
  /// The time limit of one decode, after which its process is killed.
  public var timeout: Duration
  /// The path of the decoder; nil for `imageworker-codec` beside the running executable.
  public var executable: String?
  /// The maximum number of pixels in decoding at once, over all processes. A larger image is decoded alone.
  public var pixelBudget: Int
  /// The maximum number of bytes of memory of one process.
  public var memoryLimit: Int
  /// The idle time after which a process is ended.
  public var idleTime: Duration
  /// The number of decodes after which a process is replaced.
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

/// The counters and the state of the pool.
public struct DecoderStatistics: Sendable, Hashable {
  /// The number of processes, busy or idle.
  public var running = 0
  /// The number of processes that decode, and of the tasks that wait for one.
  public var busy = 0
  public var waiting = 0
  public var decoded = 0
  public var failed = 0
  /// The number of processes that ended during a decode.
  public var crashed = 0
  public var timedOut = 0
  /// The active sandbox mechanisms of the decoders: some of `noNewPrivileges`, `rlimits`, `landlock` and `seccomp`.
  /// Empty before the first decoder.
  public var sandbox: [String] = []

  public init() {}
}

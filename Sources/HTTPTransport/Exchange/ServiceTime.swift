/// The time that curl serves one connection within one call, and its limit.
///
/// libcurl before 8.1 reads an HTTP/2 connection for as long as frames come that bring nothing for the stream it reads
/// for, and OpenSSL reads for as long as TLS messages come that bring no content. A server that sends such input
/// without end would keep the thread, and with it all other transfers. An ordinary call takes well under a millisecond
/// for each stream that it serves: it reads one record or buffer for each.
struct ServiceTime {
  /// Identifies a connection for as long as it is open.
  typealias Connection = UnsafeMutableRawPointer

  /// A connection that has been read for longer than this in one call is suspected.
  static let suspectedAfter = Duration.milliseconds(80)
  /// A suspected one that is read on for so much processor time is ended. The time of the clock alone would also count
  /// while the thread has no processor.
  static let endedAfter = Duration.milliseconds(40)

  private struct Use {
    var time = Duration.zero
    /// The thread's processor time when the connection came under suspicion.
    var suspectedAt: Duration?
  }

  /// Those of this call, without the current one.
  private var uses: [Connection: Use] = [:]
  private var current: (connection: Connection, use: Use, since: ContinuousClock.Instant)?

  /// Forgets what happened in the call before.
  mutating func beginCall() {
    guard current != nil else { return }
    current = nil
    uses.removeAll(keepingCapacity: true)
  }

  /// Counts the time since the last record of the call for the connection of that record.
  ///
  /// - Parameter processorTime: how much the thread has used since it began.
  /// - Returns: whether the connection, of which a record is now read, has to be ended.
  mutating func isTooLong(
    for connection: Connection, now: ContinuousClock.Instant, processorTime: () -> Duration
  ) -> Bool {
    if let last = current {
      var use = last.use
      use.time += last.since.duration(to: now)
      if last.connection != connection {
        uses[last.connection] = use
        use = uses[connection] ?? Use()
      }
      current = (connection, use, now)
    } else {
      current = (connection, uses[connection] ?? Use(), now)
    }
    guard let use = current?.use, use.time > Self.suspectedAfter else { return false }
    let used = processorTime()
    if let suspectedAt = use.suspectedAt { return used - suspectedAt > Self.endedAfter }
    current?.use.suspectedAt = used
    return false
  }
}

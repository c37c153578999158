internal import CAres
internal import Platform
internal import Threads

/// One question to name servers, with its attempts.
final class NameQuery {
  /// The outcome of an attempt.
  enum End: Hashable {
    case answered(NameQuestions.Answer)
    /// The server answered that it failed (RFC 1035 section 4.1.1), or sent something malformed.
    case serverFailed
    case refused
    /// No answer in time, or the query could not be sent.
    case lost
  }

  let name: String
  let type: RecordType
  var attempts = 0
  /// The server of the last attempt.
  var server = 0
  /// The number by which lost attempts have shrunk the window.
  var losses = 0
  /// Whether the current attempt has not been answered for `NameServerConfiguration.quietAfter`.
  var isQuiet = false

  init(_ name: String, _ type: RecordType) {
    self.name = name
    self.type = type
  }
}

/// A channel of c-ares to one name server. If it is released, its queries in flight never end.
///
/// One attempt is made for each query. c-ares itself repeats a truncated answer's query over TCP.
final class NameServerChannel: SocketOwner {
  private(set) var queryCount = 0
  private(set) var inFlight = 0
  private let poll: SocketPoll
  private let ended: (NameQuery, NameQuery.End) -> Void
  private var channel: ares_channel!

  /// A query while c-ares has it.
  private final class Passage {
    let query: NameQuery
    unowned let channel: NameServerChannel

    init(_ query: NameQuery, _ channel: NameServerChannel) {
      self.query = query
      self.channel = channel
    }
  }

  /// Fails if memory is short.
  init?(
    _ server: UnsafePointer<ares_addr_port_node>, timeout: Duration, poll: SocketPoll,
    ended: @escaping (NameQuery, NameQuery.End) -> Void
  ) {
    self.poll = poll
    self.ended = ended
    var options = ares_options()
    // Otherwise c-ares would merge all negative answers into one error.
    options.flags = Int32(ARES_FLAG_NOCHECKRESP)
    options.timeout = Int32(clamping: timeout.millisecondsRoundedUp)
    options.tries = 1
    options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
    options.sock_state_cb = { context, socket, isReading, isWriting in
      guard let context else { return assertionFailure("c-ares must pass on the channel's address") }
      let channel = Unmanaged<NameServerChannel>.fromOpaque(context).takeUnretainedValue()
      channel.poll.watch(socket, reading: isReading != 0, writing: isWriting != 0, for: channel)
    }
    let mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB
    guard ares_init_options(&channel, &options, mask) == cares_success else { return nil }
    guard cares_set_server(channel, server) == cares_success else { return nil }
  }

  deinit { if let channel { ares_destroy(channel) } }

  func ask(_ query: NameQuery) {
    queryCount += 1
    inFlight += 1
    let context = Unmanaged.passRetained(Passage(query, self)).toOpaque()
    let type: Int32 = query.type == .a ? 1 : 28
    ares_query(
      channel, query.name, 1, type,
      { context, status, _, answer, length in
        guard let context else { return assertionFailure("c-ares must pass on the query's address") }
        let passage = Unmanaged<Passage>.fromOpaque(context).takeRetainedValue()
        guard status != cares_destruction else { return }
        passage.channel.inFlight -= 1
        passage.channel.ended(
          passage.query,
          NameQuery.End(status, UnsafeBufferPointer(start: answer, count: Int(length)), passage.query.type))
      }, context)
  }

  func ready(_ socket: Int32, isReadable: Bool, isWritable: Bool) {
    ares_process_fd(channel, isReadable ? socket : -1, isWritable ? socket : -1)
  }

  func checkTimeouts() { ares_process_fd(channel, -1, -1) }

  /// Milliseconds until the next query times out; nil if there is none.
  var timeLeft: Int32? {
    let left = cares_time_left(channel)
    return left < 0 ? nil : left
  }
}

extension NameQuery.End {
  /// - Parameters:
  ///   - status: the status from c-ares.
  ///   - answer: with `ARES_SUCCESS`, a whole message (RFC 1035 section 4).
  init(_ status: Int32, _ answer: UnsafeBufferPointer<UInt8>, _ type: RecordType) {
    self =
      switch status {
      case cares_success: Self(answer, type)
      case cares_no_data: .answered(.noData)
      // The second status is for a name that cannot be encoded in a query.
      case cares_not_found, cares_bad_name: .answered(.noSuchName)
      case cares_refused: .refused
      case cares_server_failed, cares_format_error, cares_not_implemented, cares_bad_response:
        .serverFailed
      default: .lost
      }
  }

  private init(_ answer: UnsafeBufferPointer<UInt8>, _ type: RecordType) {
    var bytes = [UInt8](repeating: 0, count: 16 * Int(CARES_MAX_ADDRESSES))
    var (count, timeToLive): (Int32, Int32) = (0, 0)
    let status = cares_addresses(
      answer.baseAddress, Int32(answer.count), type == .a ? 0 : 1, &bytes, &count, &timeToLive)
    let length = type == .a ? 4 : 16
    let addresses = (0..<Int(count)).map { IPAddress(bytes: bytes[(16 * $0)..<(16 * $0 + length)]) }
    switch status {
    case cares_success where !addresses.isEmpty:
      self = .answered(.addresses(addresses, timeToLive: .seconds(max(0, timeToLive))))
    case cares_success, cares_no_data: self = .answered(.noData)
    default: self = .serverFailed
    }
  }
}

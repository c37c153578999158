internal import Platform
internal import Threads

/// Carries commands from other threads to the pool's thread, and the pool's statistics back.
final class PoolMailbox: Sendable {
  enum Command: Sendable {
    case submit(
      DecodeTicket, DecodeTask, priority: Int,
      @Sendable (Result<Decoded, DecodeError>, Instant?) -> Void)
    case reprioritize(DecodeTicket, Int)
    case cancel(DecodeTicket)
    case formats(@Sendable (CodecFormats) -> Void)
    case configure(DecoderSettings)
    case observe(DecoderPool.Observer?)
    case shutDown
  }

  private enum Thread {
    case notStarted
    case running
    case ended
  }

  private struct State {
    var settings: DecoderSettings
    var observer: DecoderPool.Observer?
    var commands: [Command] = []
    var lastTicket: UInt64 = 0
    var thread = Thread.notStarted
    var isClosed = false
    var statistics = DecoderStatistics()
  }

  private let state: Locked<State>
  /// Created at the start, because transfers may hold all available descriptors at the time of the first decode.
  private let wakeUp = WakeupPipe.required()

  let sharedDecodes: (any SharedDecodes)?
  let onFailure: @Sendable (DecoderFailure) -> Void

  init(
    _ settings: DecoderSettings, sharedDecodes: (any SharedDecodes)?,
    onFailure: @escaping @Sendable (DecoderFailure) -> Void
  ) {
    state = Locked(State(settings: settings))
    (self.sharedDecodes, self.onFailure) = (sharedDecodes, onFailure)
  }

  var statistics: DecoderStatistics { state.withLock { $0.statistics } }

  func publish(_ statistics: DecoderStatistics) { state.withLock { $0.statistics = statistics } }

  func newTicket() -> DecodeTicket {
    state.withLock {
      $0.lastTicket += 1
      return DecodeTicket(number: $0.lastTicket)
    }
  }

  /// Starts the thread if there is work for it. False if the pool is closed and no thread will read the command.
  @discardableResult
  func post(_ command: Command) -> Bool {
    state.withLock { state in
      if state.isClosed { return false }
      switch (command, state.thread) {
      case (.shutDown, .notStarted):
        (state.isClosed, state.thread) = (true, .ended)
        return true
      case (.configure(let settings), .notStarted):
        state.settings = settings
        return true
      case (.observe(let observer), .notStarted):
        state.observer = observer
        return true
      case (.reprioritize, .notStarted), (.cancel, .notStarted): return true
      case (_, .notStarted): start(&state)
      default: break
      }
      if case .shutDown = command { state.isClosed = true }
      state.commands.append(command)
      if case .running = state.thread, state.commands.count == 1 { wakeUp.wake() }
      return true
    }
  }

  private func start(_ state: inout State) {
    let (settings, observer) = (state.settings, state.observer)
    state.thread = .running
    startThread(name: "decoders") { [self] in
      let loop = PoolLoop(mailbox: self, settings: settings, observer: observer, wakeUp: wakeUp)
      while loop.turn() {}
      end()
    }
  }

  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  private func end() {
    state.withLock { $0.thread = .ended }
    state.notify()
  }

  func waitForEnd() {
    _ = state.wait { state -> Void? in
      if case .ended = state.thread { return () }
      return nil
    }
  }
}

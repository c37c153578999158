import Foundation
import ImageStore
import Platform
import Threads

@testable import ImageCodec
@testable import Loading

/// A decoder whose results the test supplies.
final class ScriptedDecoder: ImageDecoding {
  struct Order: Sendable {
    let ticket: DecodeTicket
    let task: DecodeTask
    var priority: Int
    let then: @Sendable (Result<Decoded, DecodeError>) -> Void
  }

  private struct State {
    var orders: [Order] = []
    var taken = 0
    var cancelled: Set<DecodeTicket> = []
  }

  private let state = Locked(State())

  func submit(
    _ task: DecodeTask, priority: Int,
    then: @escaping @Sendable (Result<Decoded, DecodeError>, Instant?) -> Void
  ) -> DecodeTicket {
    defer { state.notify() }
    return state.withLock { state in
      let ticket = DecodeTicket(number: UInt64(state.orders.count))
      state.orders.append(Order(ticket: ticket, task: task, priority: priority) { then($0, nil) })
      return ticket
    }
  }

  func reprioritize(_ ticket: DecodeTicket, to priority: Int) {
    state.withLock { $0.orders[Int(ticket.number)].priority = priority }
    state.notify()
  }

  func cancel(_ ticket: DecodeTicket) {
    state.withLock { _ = $0.cancelled.insert(ticket) }
    state.notify()
  }

  func formats(then: @escaping @Sendable (CodecFormats) -> Void) { then(CodecFormats()) }
  var statistics: DecoderStatistics { DecoderStatistics() }

  // MARK: - Test interface

  var orderCount: Int { state.withLock { $0.orders.count } }

  /// Returns the next task, waiting for it.
  func next() -> Order {
    state.wait { state in
      guard state.taken < state.orders.count else { return nil }
      defer { state.taken += 1 }
      return state.orders[state.taken]
    }!
  }

  func waitForPriority(_ priority: Int, of order: Order) {
    _ = state.wait { $0.orders[Int(order.ticket.number)].priority == priority ? () : nil }
  }

  func priority(of order: Order) -> Int { state.withLock { $0.orders[Int(order.ticket.number)].priority } }

  func waitForCancel(of order: Order) { _ = state.wait { $0.cancelled.contains(order.ticket) ? () : nil } }

  /// Returns the next task after completing it.
  func answer(_ result: @Sendable (DecodeTask) -> Result<Decoded, DecodeError> = succeed) {
    let order = next()
    order.then(result(order.task))
  }

  /// The result of a real decoder: a variant is an image of one pixel, pixels are one red pixel.
  static let succeed: @Sendable (DecodeTask) -> Result<Decoded, DecodeError> = { task in
    var decoded = Decoded()
    (decoded.width, decoded.height) = (1, 1)
    if task.wantsPlaceholder || task.output == .placeholder {
      decoded.placeholder = Placeholder(thumbHash: [1, 2, 3], color: 0x0A0B0C)
    }
    switch task.output {
    case .encoded(let path), .preview(let path, _):
      decoded.format = .gif
      decoded.bytes = Scene.image.count
      _ = FileManager.default.createFile(atPath: path, contents: Data(Scene.image))
    case .pixels(let path):
      decoded.channels = 3
      _ = FileManager.default.createFile(atPath: path, contents: Data([255, 0, 0]))
    case .facts(let wanted): add(wanted, to: &decoded)
    case .renditions(let set, let path):
      add(set.facts, to: &decoded)
      decoded.renditions = set.renditions.map { _ in
        Decoded.File(bytes: Scene.image.count, format: .gif, width: 1, height: 1, frames: 1, quality: nil)
      }
      decoded.bytes = Scene.image.count * set.renditions.count
      if set.renditions.isEmpty { break }
      let files = set.renditions.flatMap { _ in Scene.image }
      _ = FileManager.default.createFile(atPath: path, contents: Data(files))
    case .check, .placeholder: break
    }
    return .success(decoded)
  }

  private static func add(_ wanted: FactSet, to decoded: inout Decoded) {
    if wanted.contains(.perceptualHash) { decoded.facts.perceptualHash = 0xABC }
    if wanted.contains(.exif) { decoded.facts.exif = [.make: .text("Maker"), .iso: .number(400)] }
    if wanted.contains(.container) { decoded.facts.container = ContainerFacts(colorSpace: "gray", bitDepth: 8) }
    if wanted.contains(.gps) { decoded.facts.gps = [.latitude: .number(-1.5), .longitude: .number(9)] }
  }
}

import Foundation
import Platform
import Threads

@testable import HTTPTransport

/// A name server on the loopback interface (RFC 1035, over UDP and TCP) that gives the answers of a script.
final class ScriptedNameServer: @unchecked Sendable {
  // Unchecked: `state` is a lock; the rest is set in `init`.
  struct Question: Sendable, Hashable {
    var name: String
    var type: RecordType
  }

  enum Reply: Sendable {
    case addresses([String], timeToLive: Int)
    /// An alias of a name that has an address, with its own time to live.
    case alias(String, timeToLive: Int, address: String)
    case noData
    /// A response code (RFC 1035 section 4.1.1).
    case code(UInt8)
    /// Over UDP, a truncated answer.
    case truncated
    /// These bytes after the header and the question.
    case garbage([UInt8])
    /// Like the one without a header.
    case rubbish
    case drop
    static let noSuchName = code(3)
    static let serverFailed = code(2)
    static let refused = code(5)
    static func address(_ address: String) -> Reply { .addresses([address], timeToLive: 60) }
  }

  /// - Parameter number: how often the question has been asked before, over TCP as well.
  typealias Script = @Sendable (_ question: Question, _ number: Int) -> Reply

  private struct State {
    var questions: [Question] = []
    var inFlight = 0
    var maxInFlight = 0
    var overTCP = 0
  }

  let port: Int
  private let socket: Int32
  private let listener: Int32
  private let script: Script
  private let state = Locked(State())

  init(_ script: @escaping Script) {
    self.script = script
    let (listener, socket, port) = Self.sockets()
    (self.listener, self.socket, self.port) = (listener, socket, port)
    startThread(name: "names") { [weak self] in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        var sender = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &sender) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            recvfrom(socket, &buffer, buffer.count, 0, $0, &length)
          }
        }
        guard count > 0, let self else { break }
        guard let answer = self.answer(Array(buffer[..<count]), overTCP: false) else { continue }
        _ = withUnsafePointer(to: &sender) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            sendto(socket, answer, answer.count, 0, $0, length)
          }
        }
      }
      closeDescriptor(socket)
    }
    startThread(name: "names-tcp") { [weak self] in
      while case let connection = accept(listener, nil, nil), connection >= 0 {
        while let length = Self.read(2, from: connection),
          let query = Self.read(Int(length[0]) << 8 | Int(length[1]), from: connection),
          let answer = self?.answer(query, overTCP: true)
        {
          let message = [UInt8(answer.count >> 8), UInt8(answer.count & 255)] + answer
          _ = write(connection, message, message.count)
        }
        closeDescriptor(connection)
      }
      closeDescriptor(listener)
    }
  }

  /// For TCP and UDP, with one port. Queries of other tests may have taken a port for UDP alone.
  private static func sockets() -> (listener: Int32, socket: Int32, port: Int) {
    while true {
      let listener = LoopbackSocket.listening()
      if let socket = LoopbackSocket(datagramSocket, port: listener.port) {
        return (listener.descriptor, socket.descriptor, Int(listener.port))
      }
      guard errno == EADDRINUSE else { fatalError("no socket for UDP: \(String(cString: strerror(errno)))") }
      closeDescriptor(listener.descriptor)
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    shutdown(socket, Int32(SHUT_RDWR))
  }

  var configuration: NameServerConfiguration {
    NameServerConfiguration(servers: "127.0.0.1:\(port)", hostsFile: "/dev/null", hasIPv6: false)
  }

  var questions: [Question] { state.withLock { $0.questions } }
  var names: [String] { questions.map(\.name) }
  var overTCP: Int { state.withLock { $0.overTCP } }

  /// Waits until `count` questions have arrived.
  func waitForQuestions(_ count: Int) {
    _ = state.wait { $0.questions.count >= count ? () : nil }
  }

  private func answer(_ query: [UInt8], overTCP: Bool) -> [UInt8]? {
    var labels: [String] = []
    var at = 12
    while query[at] != 0 {
      labels.append(String(decoding: query[(at + 1)...(at + Int(query[at]))], as: UTF8.self))
      at += 1 + Int(query[at])
    }
    at += 5
    let question = Question(name: labels.joined(separator: "."), type: query[at - 3] == 1 ? .a : .aaaa)
    let number = state.withLock { state in
      state.overTCP += overTCP ? 1 : 0
      state.questions.append(question)
      return state.questions.count { $0 == question } - 1
    }
    state.notify()
    // A response, recursion available.
    func message(flags: [UInt8] = [0x81, 0x80], answers: Int, _ records: [UInt8]) -> [UInt8] {
      query[..<2] + flags + [0, 1, 0, UInt8(answers), 0, 0, 0, 0] + query[12..<at] + records
    }
    func record(_ owner: [UInt8], _ type: UInt8, _ timeToLive: Int, _ data: [UInt8]) -> [UInt8] {
      let time = withUnsafeBytes(of: UInt32(timeToLive).bigEndian) { Array($0) }
      return owner + [0, type, 0, 1] + time + [0, UInt8(data.count)] + data
    }
    let type: UInt8 = question.type == .a ? 1 : 28
    switch script(question, number) {
    case .addresses(let addresses, let timeToLive):
      let records = addresses.map { record([0xC0, 12], type, timeToLive, IPAddress($0)!.bytes) }
      return message(answers: addresses.count, Array(records.joined()))
    case .alias(let name, let timeToLive, let address):
      let labels = name.split(separator: ".").map { [UInt8($0.utf8.count)] + Array($0.utf8) }
      let encoded = Array(labels.joined()) + [0]
      let records =
        record([0xC0, 12], 5, timeToLive, encoded) + record(encoded, type, 3600, IPAddress(address)!.bytes)
      return message(answers: 2, records)
    case .noData: return message(answers: 0, [])
    case .code(let code): return message(flags: [0x81, 0x80 | code], answers: 0, [])
    case .truncated: return message(flags: [0x83, 0x80], answers: 0, [])
    case .garbage(let bytes): return message(answers: 1, bytes)
    case .rubbish: return Array(query[..<2]) + [1, 2, 3]
    case .drop: return nil
    }
  }

  private static func read(_ count: Int, from connection: Int32) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = bytes.withUnsafeMutableBytes { recv(connection, $0.baseAddress! + done, count - done, 0) }
      guard got > 0 else { return nil }
      done += got
    }
    return bytes
  }
}

// These names have other meanings inside the class.
private let closeDescriptor: @Sendable (Int32) -> Void = { _ = close($0) }

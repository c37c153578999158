import Foundation
import Platform
import Threads

/// An HTTP server on the loopback interface that runs a script for each request, on plain blocking sockets.
final class ScriptedServer: @unchecked Sendable {
  // Unchecked: `state` is a lock; the rest is set in `init`.
  typealias Script = @Sendable (_ request: ReceivedRequest, _ connection: ServerConnection) -> Void

  private struct State {
    var connections: [ServerConnection] = []
    var requests: [ReceivedRequest] = []
    var isStopped = false
  }

  let port: Int
  private let listener: Int32
  private let state = Locked(State())

  /// - Parameters:
  ///   - greeting: sent before any request arrives; nil ends the connection.
  ///   - script: called for each request of each connection, on one thread per connection.
  init(greeting: String? = "", _ script: @escaping Script) {
    let socket = LoopbackSocket.listening()
    let listener = socket.descriptor
    (self.listener, port) = (listener, Int(socket.port))
    startThread(name: "listener") { [state] in
      while true {
        let socket = accept(listener, nil, nil)
        if socket < 0 { break }
        let connection = ServerConnection(socket)
        let isStopped = state.withLock {
          $0.connections.append(connection)
          return $0.isStopped
        }
        if isStopped {
          connection.release()
          break
        }
        startThread(name: "connection") {
          if let greeting { connection.send(greeting) } else { connection.close() }
          while let request = connection.readRequest() {
            state.withLock { $0.requests.append(request) }
            state.notify()
            script(request, connection)
          }
          connection.release()
        }
      }
      closeDescriptor(listener)
    }
  }

  deinit {
    let connections = state.withLock {
      $0.isStopped = true
      return $0.connections
    }
    for connection in connections { connection.close() }
    shutdown(listener, Int32(SHUT_RDWR))
  }

  func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }
  var origin: String { "127.0.0.1:\(port)" }
  var connectionCount: Int { state.withLock { $0.connections.count } }
  var requests: [ReceivedRequest] { state.withLock { $0.requests } }

  /// Waits until `count` requests have arrived.
  func waitForRequests(_ count: Int) {
    _ = state.wait { $0.requests.count >= count ? () : nil }
  }
}

struct ReceivedRequest: Sendable {
  /// The request line and the header lines.
  let lines: [String]
  var line: String { lines[0] }
  var path: String { String(line.split(separator: " ")[1]) }

  /// The value of a header field; nil if it was not sent.
  subscript(name: String) -> String? {
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      if parts[0].lowercased() == name { return parts[1].trimmingCharacters(in: .whitespaces) }
    }
    return nil
  }
}

/// The server's end of a connection.
final class ServerConnection: Sendable {
  private let socket: Int32
  private let isOpen = Locked(true)
  private let unread = Locked<[UInt8]>([])

  init(_ socket: Int32) {
    self.socket = socket
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    #if canImport(Darwin)
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    #endif
  }

  /// nil if the client has closed the connection.
  func readRequest() -> ReceivedRequest? {
    var head = unread.withLock { bytes in
      defer { bytes = [] }
      return bytes
    }
    let end = Array("\r\n\r\n".utf8)
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      if let range = head.firstRange(of: end) {
        unread.withLock { [rest = Array(head[range.upperBound...])] in $0 = rest }
        let text = String(decoding: head[..<range.lowerBound], as: UTF8.self)
        return ReceivedRequest(lines: text.components(separatedBy: "\r\n"))
      }
      let count = recv(socket, &buffer, buffer.count, 0)
      if count <= 0 { return nil }
      head += buffer[..<count]
    }
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Returns false if the client has closed the connection.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { sendBytes(socket, $0.baseAddress, $0.count, noSignalFlag) }
      if count <= 0 { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  func respond(_ status: String = "200 OK", _ headers: [String] = [], body: String = "") {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers
    send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
  }

  func redirect(_ status: String = "302 Found", to location: String) {
    respond(status, ["Location: \(location)"], body: "elsewhere")
  }

  /// Ends the connection in both directions.
  func close() {
    isOpen.withLock { if $0 { _ = shutdown(socket, Int32(SHUT_RDWR)) } }
  }

  /// Closes the descriptor. Only its own thread may, since a read could otherwise hit a reused descriptor.
  fileprivate func release() {
    isOpen.withLock { $0 = false }
    closeDescriptor(socket)
  }

  /// Blocks until the client has closed the connection.
  func waitForClose() {
    var byte: UInt8 = 0
    while recv(socket, &byte, 1, 0) > 0 {}
  }
}

/// A gate at which a server waits until the test opens it.
final class Gate: Sendable {
  private let isOpen = Locked(false)

  func open() {
    isOpen.withLock { $0 = true }
    isOpen.notify()
  }

  func wait() { _ = isOpen.wait { $0 ? () : nil } }
}

// These names have other meanings inside the classes.
private let sendBytes: @Sendable (Int32, UnsafeRawPointer?, Int, Int32) -> Int = { send($0, $1, $2, $3) }
private let closeDescriptor: @Sendable (Int32) -> Void = { _ = close($0) }

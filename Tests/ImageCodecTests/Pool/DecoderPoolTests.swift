import Foundation
import ImageCodec
import Testing
import Threads

/// The pool with decoders that misbehave: scripts that implement the decoder's side of the sockets.
struct DecoderPoolTests {
  private static let image = Pictures.gif(4, 4, colors: [(255, 0, 0)])
  private static let drawing = Build.text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"/>")
  private static let answer = """
    printf 'says=done\\nbytes=0\\nwidth=0\\nheight=0\\nframes=1\\nchannels=0\\nsourceWidth=4\\nsourceHeight=4\\n\\n' >&0
    """

  /// The files of all tests' decoders, kept until the process ends because decoders may briefly outlive their tests.
  private static let folder: String = {
    atexit { try? FileManager.default.removeItem(atPath: DecoderPoolTests.folder) }
    return FileManager.default.temporaryDirectory.appending(path: "pools-\(UUID().uuidString)").path
  }()

  /// A decoder whose children run `body`, a shell script, for each request, with the socket of their tasks as standard
  /// input. `$HERE` is a directory for each test. Its files `parents`, `libraries` and `children` have a line for each
  /// process.
  ///
  /// - Parameter start: the parent runs it before it announces that it is ready, and ends with its status if that is not
  ///   0. `$LIBRARIES` are those to load.
  private func decoding(
    _ body: String, count: Int = 1, timeout: Duration = .seconds(3600), elapsedLimit: Duration? = nil,
    start: String = ":", lifetime: Int = 1, idleTime: Duration = .seconds(3600),
    sharedDecodes: (any SharedDecodes)? = nil, onFailure: @escaping @Sendable (DecoderFailure) -> Void = { _ in }
  ) throws -> (Decoding, String) {
    let here = "\(Self.folder)/\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: here, withIntermediateDirectories: true)
    try """
    echo $$ >> "$HERE/children"
    while true; do
      while read -r line; do [ -n "$line" ] || break; done
      [ -z "$line" ] || exit
      \(body)
      N=$((N + 1))
      [ $N -lt $LIFETIME ] || exit 0
    done
    """.write(toFile: "\(here)/child", atomically: true, encoding: .utf8)
    try start.write(toFile: "\(here)/start", atomically: true, encoding: .utf8)
    let path = "\(here)/decoder"
    try Self.parent.replacing("@HERE@", with: here).write(toFile: path + ".py", atomically: true, encoding: .utf8)
    // Copied by another process: an executable that this process, or briefly a child of another test, has open for
    // writing cannot be run.
    let copy = try Process.run(URL(filePath: "/bin/cp"), arguments: [path + ".py", path])
    copy.waitUntilExit()
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    let decoding = try Decoding(
      count: count, timeout: timeout, elapsedLimit: elapsedLimit, executable: path, lifetime: lifetime,
      idleTime: idleTime, sharedDecodes: sharedDecodes, onFailure: onFailure)
    return (decoding, here)
  }

  /// A parent in Python, since a shell receives no descriptors. It runs the scripts `start` and `child` beside it.
  private static let parent = #"""
    #!/usr/bin/python3
    import contextlib, ctypes, os, signal, socket, subprocess, sys, threading

    here = "@HERE@"
    os.environ.update(HERE=here, LIBRARIES=sys.argv[3], LIFETIME=sys.argv[4])
    for name, line in (("parents", os.getpid()), ("libraries", sys.argv[3])):
        with open(f"{here}/{name}", "a") as file:
            file.write(f"{line}\n")
    worker = socket.socket(fileno=0)
    failure = subprocess.call(["/bin/sh", f"{here}/start"])
    if failure:
        os._exit(failure)
    worker.sendall(b"says=ready\ndecode=gif,svg\nencode=png\nsandbox=none\n\n")
    child = 0

    def tell_end(child):
        status = os.waitpid(child, 0)[1]
        with contextlib.suppress(OSError):  # the worker has hung up
            worker.sendall(b"says=ended\nchild=%d\nstatus=%d\n\n" % (child, status))

    def kill():
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass

    while True:
        command, sockets, _, _ = socket.recv_fds(worker, 1, 1)
        if command in (b"\1", b"\3"):
            child = os.fork()
            if not child:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with its parent
                os.setpgid(0, 0)
                os.dup2(sockets[0], 0)
                if command == b"\3":
                    os.environ["LIFETIME"] = "1"
                os.execv("/bin/sh", ["/bin/sh", f"{here}/child"])
            os.close(sockets[0])
            worker.sendall(b"says=started\nchild=%d\n\n" % child)
            ending = threading.Thread(target=tell_end, args=[child], daemon=True)
            ending.start()
        elif child:
            kill()
        if not command:
            if child:
                ending.join()
            os._exit(0)
    """#

  private func lines(_ name: String, _ here: String) throws -> [String] {
    try String(contentsOfFile: "\(here)/\(name)", encoding: .utf8).split(separator: "\n").map(String.init)
  }

  private func parents(_ here: String) throws -> [Int32] { try lines("parents", here).compactMap { Int32($0) } }

  private func children(_ here: String) throws -> [Int32] { try lines("children", here).compactMap { Int32($0) } }

  private func isGone(_ pid: Int32) -> Bool { kill(pid, 0) != 0 && errno == ESRCH }

  @Test(arguments: [(1, 3), (2, 2), (1000, 1)])
  func `a child decodes as many images as it may`(lifetime: Int, children: Int) async throws {
    let (decoding, here) = try decoding(Self.answer, lifetime: lifetime)
    for _ in 0..<3 { #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4) }
    #expect(try [self.children(here).count, parents(here).count] == [children, 1])
    #expect((decoding.pool.statistics.decoded, decoding.pool.statistics.running) == (3, 1))
  }

  @Test(
    arguments: [
      ([DecodeTask.Isolation.image, .image], 2), ([.none, .none, .none], 1), ([.image, .none, .none], 2),
      ([.none, .image, .none], 3), ([.tenant("a"), .tenant("a"), .tenant("b"), .tenant("b"), .tenant("a")], 3),
      ([.tenant("a"), .none, .image], 3),
    ], [1, 1000])
  func `a child decodes images of one isolation`(
    order: (isolations: [DecodeTask.Isolation], children: Int), lifetime: Int
  ) async throws {
    let (decoding, here) = try decoding(Self.answer, lifetime: lifetime)
    for isolation in order.isolations {
      var task = try decoding.task(Self.image, .check)
      task.isolation = isolation
      #expect(try await decoding.run(task).get().sourceWidth == 4)
    }
    #expect(try [children(here).count, parents(here).count] == [order.children, 1])
  }

  @Test(arguments: [
    // The system may have killed it for lack of memory.
    ("kill -9 $$", DecodeError.killed, 2), ("kill -11 $$", .crashed, 1), ("exit 3", .crashed, 1),
    ("kill -6 $$", .corrupt("the image library aborts on this image"), 1),
    ("\(answer); exit 3", .crashed, 1), ("exec <&-; kill -11 $$", .crashed, 1),
  ]) func `a crash is retried once if the image may not be its reason`(
    script: String, error: DecodeError, tries: Int
  ) async throws {
    let (decoding, here) = try decoding(script)
    #expect(await decoding.run(try decoding.task(Self.image, .check)) == .failure(error))
    #expect(try [self.children(here).count, parents(here).count] == [tries, 1])
    #expect(decoding.pool.statistics.crashed == tries)
  }

  @Test(arguments: [
    ("kill -9 $$", ":", 2, "crashed while it decoded gif: signal 9 (Killed)"),
    ("exit 3", ":", 1, "crashed while it decoded gif: exit status 3"),
    ("printf 'x\\n\\n' >&0", ":", 1, "was killed while it decoded gif: an invalid reply"),
    ("exec sleep 1000", ":", 1, "was killed while it decoded gif: the limit of elapsed time"),
    ("while :; do :; done", ":", 1, "was killed while it decoded gif: the limit of processor time"),
    ("", "exit 127", 3, "crashed: exit status 127"),
  ]) func `each process that fails is reported with the reason`(
    script: String, start: String, count: Int, message: String
  ) async throws {
    let failures = AsyncStream<DecoderFailure>.makeStream()
    let isSlow = message.contains("time")
    let (decoding, here) = try decoding(
      script, timeout: isSlow ? .milliseconds(300) : .seconds(3600),
      elapsedLimit: script.contains("sleep") ? .milliseconds(300) : nil, start: start
    ) { failures.continuation.yield($0) }
    _ = await decoding.run(try decoding.task(Self.image, .check))
    // Its end is reported when it has been seen, after the answer.
    if isSlow { #expect(await decoding.limit(of: try decoding.task(Self.image, .check)) != nil) }
    decoding.pool.shutDown()
    failures.continuation.finish()
    let seen = await failures.stream.reduce(into: [DecoderFailure]()) { $0.append($1) }
    #expect(seen.prefix(count).map(\.message) == Array(repeating: message, count: count))
    #expect(try seen.map(\.process) == (start == ":" ? children(here) : parents(here)).prefix(seen.count).map { $0 })
    #expect(seen.allSatisfy { $0.isTimeout == isSlow && $0.format == (start == ":" ? .gif : nil) })
  }

  @Test func `a process that works as it should is not reported`() async throws {
    let failures = AsyncStream<DecoderFailure>.makeStream()
    let (decoding, _) = try decoding(Self.answer) { failures.continuation.yield($0) }
    for _ in 0..<3 { _ = try await decoding.run(try decoding.task(Self.image, .check)).get() }
    decoding.pool.shutDown()
    failures.continuation.finish()
    #expect(await failures.stream.reduce(into: 0) { count, _ in count += 1 } == 0)
  }

  @Test func `one crash does not fail the task, and never fails other tasks`() async throws {
    let (decoding, here) = try decoding(
      "if [ ! -e \"$HERE/crashed\" ]; then touch \"$HERE/crashed\"; kill -9 $$; fi; \(Self.answer)")
    let image = Self.image
    let outcomes = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<5 { group.addTask { (try? await decoding.run(try decoding.task(image, .check)).get()) != nil } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes == [true, true, true, true, true])
    #expect(try children(here).count == 6)
  }

  @Test(arguments: ["kill -11 $$", "exit 3", "printf 'says=failed\\nkind=outOfMemory\\ntext=x\\n\\n' >&0"])
  func `a task that fails after others in the same child is retried in a fresh one`(failure: String) async throws {
    let (decoding, here) = try decoding(
      "if [ \"$N\" ]; then \(failure); else \(Self.answer); fi", lifetime: 1000)
    for _ in 0..<3 { #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4) }
    #expect(try children(here).count == 3)
  }

  @Test func `a fresh child that runs out of memory is not retried`() async throws {
    let (decoding, here) = try decoding("printf 'says=failed\\nkind=outOfMemory\\ntext=x\\n\\n' >&0")
    #expect(await decoding.run(try decoding.task(Self.image, .check)) == .failure(.outOfMemory("x")))
    #expect(try children(here).count == 1)
  }

  @Test func `a parent that ends during a decode is replaced, and the task is retried once`() async throws {
    let (decoding, here) = try decoding(
      "[ -e \"$HERE/again\" ] || { touch \"$HERE/again\"; kill -9 $PPID; exec sleep 1000; }; \(Self.answer)")
    #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4)
    #expect(try [parents(here).count, decoding.pool.statistics.crashed] == [2, 1])
    let (poor, there) = try self.decoding("kill -9 $PPID; exec sleep 1000")
    #expect(await poor.run(try poor.task(Self.image, .check)) == .failure(.crashed))
    #expect(try parents(there).count == 2)
  }

  @Test func `a child that does not end after its answer is killed, and its answer does not count`() async throws {
    let (decoding, _) = try decoding("\(Self.answer); exec sleep 1000", elapsedLimit: .milliseconds(300))
    #expect(await decoding.limit(of: try decoding.task(Self.image, .check)) == .elapsedTime)
    #expect(decoding.pool.statistics.running == 1)
  }

  @Test(arguments: [
    ("while :; do :; done", DecodeTimeout.Limit.processorTime), ("exec sleep 1000", .elapsedTime),
    ("kill -STOP $$", .elapsedTime),
  ]) func `a decoder that takes too long is killed, and the next task gets another one`(
    script: String, limit: DecodeTimeout.Limit
  ) async throws {
    let (decoding, here) = try decoding(
      "if [ ! -e \"$HERE/late\" ]; then touch \"$HERE/late\"; \(script); fi; \(Self.answer)", timeout: .seconds(1),
      elapsedLimit: limit == .elapsedTime ? .seconds(4) : .seconds(3600))
    #expect(await decoding.limit(of: try decoding.task(Self.image, .check)) == limit)
    #expect(decoding.pool.statistics.timedOut == 1)
    #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4)
    #expect(try [self.children(here).count, parents(here).count] == [2, 1])
  }

  @Test func `time in which a decode does not run does not count`() async throws {
    let (decoding, _) = try decoding("sleep 1; \(Self.answer)", timeout: .milliseconds(200))
    #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4)
  }

  @Test func `the time of earlier images in the same child does not count`() async throws {
    // Each decode takes a small part of the limit, and all together more than it.
    let (decoding, here) = try decoding(
      "I=0; while [ $I -lt 10000 ]; do I=$((I + 1)); done; \(Self.answer)", timeout: .milliseconds(300), lifetime: 1000)
    for _ in 0..<50 { #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4) }
    #expect(try children(here).count == 1)
  }

  @Test func `a cancelled task is answered at once, waiting or running`() async throws {
    let (decoding, here) = try decoding("exec sleep 1000")
    let image = Self.image
    let answers = AsyncStream<Result<Decoded, DecodeError>>.makeStream()
    let tickets = try (0..<3).map { _ in
      decoding.pool.submit(try decoding.task(image, .check), priority: 0) { result, _ in
        answers.continuation.yield(result)
      }
    }
    decoding.pool.cancel(tickets[1])
    var iterator = answers.stream.makeAsyncIterator()
    #expect(await iterator.next() == .failure(.cancelled))
    decoding.pool.cancel(tickets[0])
    #expect(await iterator.next() == .failure(.cancelled))
    // The third runs in another child, because the first is killed.
    decoding.pool.cancel(tickets[0])
    decoding.pool.cancel(tickets[2])
    #expect(await iterator.next() == .failure(.cancelled))
    decoding.pool.shutDown()
    let processes = try children(here) + parents(here)
    #expect(processes.allSatisfy { isGone($0) })
  }

  @Test(arguments: [
    "printf 'says=done\\nbytes=7\\nwidth=0\\nheight=0\\nframes=1\\nchannels=0\\nsourceWidth=1\\nsourceHeight=1\\n\\n' >&0",
    "printf 'says=done\\n\\n' >&0", "printf 'says=ready\\ndecode=png\\nencode=\\nsandbox=\\n\\n' >&0",
    "printf 'x\\n\\n' >&0",
    "head -c 100000 /dev/zero >&0",
  ]) func `a decoder that sends an impossible reply is treated as crashed`(lie: String) async throws {
    let (decoding, _) = try decoding(lie)
    let outcome = await decoding.run(try decoding.task(Self.image, .check))
    #expect(outcome == .failure(.crashed))
  }

  @Test func `without a decoder all tasks fail with unavailable`() async throws {
    let decoding = try Decoding(executable: "/nonexistent/decoder")
    let outcome = await decoding.run(try decoding.task(Self.image, .check))
    guard case .failure(.unavailable(let text)) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(text.contains("/nonexistent/decoder"))
    #expect(await decoding.formats() == CodecFormats())
  }

  @Test func `a decoder that always ends before it is ready is unavailable`() async throws {
    let (decoding, _) = try decoding(Self.answer, start: "exit 127")
    let outcome = await decoding.run(try decoding.task(Self.image, .check))
    guard case .failure(.unavailable) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `a decoder that ends once before it is ready fails no task`() async throws {
    let (decoding, here) = try decoding(
      Self.answer, start: "[ -e \"$HERE/again\" ] || { touch \"$HERE/again\"; exit 1; }")
    async let outcomes = [
      decoding.run(try decoding.task(Self.image, .check)), decoding.run(try decoding.task(Self.image, .check)),
    ]
    for outcome in try await outcomes { #expect(throws: Never.self) { try outcome.get() } }
    #expect(try parents(here).count == 2)
  }

  @Test func `shutting down answers the remaining tasks and leaves no process`() async throws {
    let (decoding, here) = try decoding("exec sleep 1000", count: 2)
    let answers = AsyncStream<Result<Decoded, DecodeError>>.makeStream()
    for _ in 0..<5 {
      decoding.pool.submit(try decoding.task(Self.image, .check), priority: 0) { result, _ in
        answers.continuation.yield(result)
      }
    }
    while ((try? children(here)) ?? []).count < 2 { await Task.yield() }
    decoding.pool.shutDown()
    answers.continuation.finish()
    var outcomes: [Result<Decoded, DecodeError>] = []
    for await outcome in answers.stream { outcomes.append(outcome) }
    #expect(outcomes == Array(repeating: .failure(.cancelled), count: 5))
    let processes = try children(here) + parents(here)
    #expect(processes.allSatisfy { isGone($0) })
    #expect(decoding.pool.statistics.running == 0)
    #expect(await decoding.run(try decoding.task(Self.image, .check)) == .failure(.cancelled))
  }

  @Test func `a decoder killed from outside during a decode affects only that decode`() async throws {
    let (decoding, here) = try decoding(
      "touch \"$HERE/busy-$$\"; while [ ! -e \"$HERE/go\" ]; do sleep 0.01; done; \(Self.answer)", count: 2)
    let image = Self.image
    async let first = decoding.run(try decoding.task(image, .check))
    async let second = decoding.run(try decoding.task(image, .check))
    func busy() -> Int {
      ((try? FileManager.default.contentsOfDirectory(atPath: here)) ?? []).count { $0.hasPrefix("busy") }
    }
    while busy() < 2 { await Task.yield() }
    kill(try children(here)[0], SIGKILL)
    while busy() < 3 { await Task.yield() }
    _ = FileManager.default.createFile(atPath: "\(here)/go", contents: nil)
    let outcomes = try await [first, second]
    for outcome in outcomes { #expect(throws: Never.self) { try outcome.get() } }
    #expect(decoding.pool.statistics.crashed == 1)
  }

  @Test func `a decoder ends when it is idle`() async throws {
    let (decoding, here) = try decoding(Self.answer, lifetime: 2, idleTime: .milliseconds(1))
    _ = try await decoding.run(try decoding.task(Self.image, .check)).get()
    while decoding.pool.statistics.running > 0 { await Task.yield() }
    for pid in try children(here) + parents(here) { while !isGone(pid) { await Task.yield() } }
    // Another must be started for the next task.
    #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4)
  }

  @Test func `the pool runs as many processes as are allowed, and no more`() async throws {
    let (decoding, here) = try decoding(
      "touch \"$HERE/busy-$$\"; while [ ! -e \"$HERE/go\" ]; do sleep 0.01; done; \(Self.answer)", count: 3)
    let image = Self.image
    async let outcomes = withTaskGroup(of: Bool.self) { group in
      for _ in 0..<9 { group.addTask { (try? await decoding.run(try decoding.task(image, .check)).get()) != nil } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    func busy() -> Int {
      ((try? FileManager.default.contentsOfDirectory(atPath: here)) ?? []).count { $0.hasPrefix("busy") }
    }
    while busy() < 3 { await Task.yield() }
    #expect(decoding.pool.statistics.running == 3)
    _ = FileManager.default.createFile(atPath: "\(here)/go", contents: nil)
    #expect(await outcomes == Array(repeating: true, count: 9))
    #expect(try parents(here).count == 3)
  }

  @Test func `while other pools use all decodes, the pool runs one at a time`() async throws {
    let others = OtherDecodes(3)
    let (decoding, here) = try decoding(
      "touch \"$HERE/busy-$$\"; while [ ! -e \"$HERE/go-$$\" ]; do sleep 0.01; done; \(Self.answer)", count: 3,
      sharedDecodes: others)
    let image = Self.image
    async let outcomes = withTaskGroup(of: Bool.self) { group in
      for _ in 0..<5 { group.addTask { (try? await decoding.run(try decoding.task(image, .check)).get()) != nil } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    func busy() -> [String] {
      ((try? FileManager.default.contentsOfDirectory(atPath: here)) ?? []).filter { $0.hasPrefix("busy") }
    }
    func finish(_ file: String) {
      _ = FileManager.default.createFile(
        atPath: "\(here)/\(file.replacing("busy", with: "go"))", contents: nil)
    }
    while busy().isEmpty || others.refusals == 0 { await Task.yield() }
    #expect((busy().count, decoding.pool.statistics.busy) == (1, 1))
    #expect(try parents(here).count == 1, "no other decoder starts")
    finish(busy()[0])
    while busy().count < 2 { await Task.yield() }
    #expect(decoding.pool.statistics.busy == 1)
    others.count = 0
    while busy().count < 4 { await Task.yield() }
    #expect(decoding.pool.statistics.busy == 3)
    while busy().count < 5 { for file in busy() { finish(file) } }
    for file in busy() { finish(file) }
    #expect(await outcomes == Array(repeating: true, count: 5))
    decoding.pool.shutDown()
    #expect(others.recorded == 0)
  }

  /// Other pools, which run a number of decodes.
  private final class OtherDecodes: SharedDecodes {
    private let state: Locked<(count: Int, recorded: Int, refusals: Int)>

    init(_ count: Int) { state = Locked((count, 0, 0)) }

    var count: Int {
      get { state.withLock { $0.count } }
      set { state.withLock { $0.count = newValue } }
    }
    var recorded: Int { state.withLock { $0.recorded } }
    var refusals: Int { state.withLock { $0.refusals } }

    func begin(_ count: Int, limit: Int) -> Bool {
      state.withLock { state in
        let begins = count == 1 || count + state.count <= limit
        state.recorded = begins ? count : count - 1
        if !begins { state.refusals += 1 }
        return begins
      }
    }

    func record(_ count: Int) { state.withLock { $0.recorded = count } }
  }

  @Test func `a decoder loads the libraries of its first image, and one with all serves every image`() async throws {
    let (decoding, here) = try decoding(Self.answer)
    for file in [Self.image, Self.image, Self.drawing, Self.image, Self.drawing] {
      #expect(try await decoding.run(try decoding.task(file, .check)).get().sourceWidth == 4)
    }
    #expect(try lines("libraries", here) == ["common", "all"])
    let formats = await decoding.formats()
    #expect(formats.decode == [.gif, .svg])
    #expect(try lines("libraries", here).count == 2)
  }

  @Test func `the formats are those of a decoder with all libraries, which goes before waiting images`() async throws {
    let (decoding, here) = try decoding(
      "touch \"$HERE/busy\"; while [ ! -e \"$HERE/go\" ]; do sleep 0.01; done; \(Self.answer)")
    let image = Self.image
    async let outcomes = withTaskGroup(of: Bool.self) { group in
      for _ in 0..<3 { group.addTask { (try? await decoding.run(try decoding.task(image, .check)).get()) != nil } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    while !FileManager.default.fileExists(atPath: "\(here)/busy") { await Task.yield() }
    async let formats = decoding.formats()
    // The pool handles commands in order.
    let cancelled = AsyncStream<Result<Decoded, DecodeError>>.makeStream()
    decoding.pool.cancel(
      decoding.pool.submit(try decoding.task(image, .check), priority: 0) { result, _ in
        cancelled.continuation.yield(result)
      })
    for await _ in cancelled.stream { break }
    _ = FileManager.default.createFile(atPath: "\(here)/go", contents: nil)
    #expect(await formats.decode == [.gif, .svg])
    #expect(await outcomes == [true, true, true])
    #expect(try lines("libraries", here) == ["common", "all"])
  }

  @Test func `images that need few libraries are decoded though no decoder with all of them starts`() async throws {
    let (decoding, _) = try decoding(Self.answer, count: 2, start: "[ $LIBRARIES = common ]")
    #expect(try await decoding.run(try decoding.task(Self.image, .check)).get().sourceWidth == 4)
    async let drawing = decoding.run(try decoding.task(Self.drawing, .check))
    async let image = decoding.run(try decoding.task(Self.image, .check))
    guard case .failure(.unavailable) = try await drawing else { return #expect(Bool(false)) }
    #expect(try await image.get().sourceWidth == 4)
    #expect(await decoding.formats() == CodecFormats())
  }

  @Test func `a pool without tasks starts no process`() throws {
    let decoding = try Decoding()
    #expect(decoding.pool.statistics == DecoderStatistics())
    decoding.pool.shutDown()
  }
}

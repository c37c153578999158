import HTTPCaching
import HTTPTypes
import Platform
import Testing

@testable import HTTPTransport
@testable import ImageStore
@testable import Loading

/// Random events for a job, in any order that its coordinator can produce, beside a naive model.
@LoadingActor
struct JobModelTests {
  /// The state of a job as flags and counts.
  private struct Model {
    enum State { case lookingUp, waiting, resuming, transferring, storing, over }
    var state = State.lookingUp
    var mayKeep = true
    var hasTarget = false
    var hasCandidate = false
    var hasMissedOne = false
    var keepsPartialBody = false
    var partialBodiesGiven = 0
    var partialBodiesReturned = 0
    /// How often the loads were promised an end: by a response, or by an error.
    var conclusions = 0
  }

  @Test(arguments: 0..<200) func `a job agrees with a naive model under random events`(seed: UInt64) {
    var run = Run(seed: seed)
    for _ in 0..<200 where run.model.state != .over { run.step() }
    run.finish()
    #expect(run.faults.isEmpty, "seed \(seed): \(run.faults)")
    #expect(run.model.partialBodiesGiven == run.model.partialBodiesReturned, "seed \(seed)")
    #expect(run.model.conclusions == 1, "seed \(seed)")
  }

  @LoadingActor
  private struct Run {
    var job: Job
    var model = Model()
    var faults: [String] = []
    private var random: SplitMix

    init(seed: UInt64) {
      random = SplitMix(state: seed)
      job = Job(first: JobModelTests.load)
    }

    mutating func step() {
      switch model.state {
      case .lookingUp: lookupFinished()
      case .waiting:
        switch random.next() % 6 {
        case 0: lookupFinished()
        case 3: responseStored()
        case 1: clear(isQueued: true)
        case 2: job.partialBodyAvailable()
        default: permitGranted()
        }
      case .resuming:
        if random.next() % 4 == 0 { clear(isQueued: false) } else { transferStarted() }
      case .transferring:
        switch random.next() % 6 {
        case 0: clear(isQueued: false)
        case 1: repeatedLookupFinished()
        default: transferEnded()
        }
      case .storing:
        if random.next() % 3 == 0 { clear(isQueued: false) } else { model.state = .over }
      case .over: break
      }
      check()
    }

    /// Ends a job that is still under way, as its coordinator does when the last load leaves.
    mutating func finish() {
      if job.takePartialBody() != nil { model.partialBodiesReturned += 1 }
      if model.state != .over { model.conclusions += 1 }
      if model.state == .over, model.conclusions == 0 { faults.append("the loads were promised no end") }
    }

    private mutating func check() {
      let state: Model.State =
        switch job.current {
        // The scheduler tells these phases apart.
        case .none: [.lookingUp, .storing].contains(model.state) ? model.state : .waiting
        case .resuming: .resuming
        case .transferring: .transferring
        }
      if model.state != .over, state != model.state { faults.append("state \(state), not \(model.state)") }
      if job.mayKeep != model.mayKeep { faults.append("mayKeep is \(job.mayKeep)") }
      if (job.partialBody != nil) != model.keepsPartialBody { faults.append("partial body") }
      if (job.revalidationTarget != nil) != model.hasTarget { faults.append("revalidation target") }
      let hasCondition = job.conditions["if-none-match"] != nil
      if hasCondition != model.hasTarget { faults.append("conditions without a target, or a target without") }
    }

    // MARK: Events

    private mutating func lookupFinished() {
      let isFound = random.next() % 2 == 0
      let candidates = isFound ? [JobModelTests.candidate] : []
      if !job.lookupFinished(candidates, hasPartial: random.next() % 2 == 0) { faults.append("lookup refused") }
      (model.state, model.hasCandidate) = (.waiting, isFound)
      // A job that resumes a partial body sends no other conditions.
      let target = isFound && !model.keepsPartialBody ? 0 : nil
      job.setConditions(target == nil ? [:] : ["if-none-match": "\"a\""], target: target)
      model.hasTarget = target != nil
    }

    /// Somebody stores a response while the job waits. The job looks again, once.
    private mutating func responseStored() {
      let isKnown = random.next() % 3 == 0
      var stored = JobModelTests.candidate
      if !isKnown { stored.response.responseTime += 1 }
      let isMissed = !model.hasMissedOne && (!isKnown || !model.hasCandidate)
      if job.hasMissed([stored]) != isMissed { faults.append("missed: \(!isMissed)") }
      if isMissed {
        model.hasMissedOne = true
        lookupFinished()
      }
    }

    private mutating func repeatedLookupFinished() {
      if job.lookupFinished([], hasPartial: false) { faults.append("candidates replaced during a transfer") }
    }

    private mutating func permitGranted() {
      let resumes = job.mayResume && !model.keepsPartialBody && !model.hasTarget
      switch job.permitGranted(clearCount: 0, mayUseDisk: true) {
      case .resume:
        if !resumes { faults.append("resumed without reason") }
        model.state = .resuming
      case .transfer:
        if resumes { faults.append("did not resume") }
        if job.takePartialBody() != nil { model.partialBodiesReturned += 1 }
        model.keepsPartialBody = false
        transferStarted()
      }
    }

    private mutating func transferStarted() {
      job.transferStarted(TransferID(number: random.next()), JobModelTests.download)
      model.state = .transferring
    }

    private mutating func clear(isQueued: Bool) {
      let matches = random.next() % 2 == 0
      let clear = Clear(filter: matches ? .key("a") : .key("b"), tiers: .all, time: 0)
      let hadCandidate = matches && job.candidates?.isEmpty == false
      let actions = job.invalidated(by: clear, matches: matches, isQueued: isQueued)
      if matches, !isQueued { model.mayKeep = false }
      if matches, isQueued, model.hasTarget { model.hasTarget = false }
      var isDetached = false
      for action in actions {
        switch action {
        case .detach: isDetached = true
        case .dropKept:
          if job.takePartialBody() != nil { model.partialBodiesReturned += 1 }
          model.keepsPartialBody = false
        default: faults.append("a clear asked for \(action)")
        }
      }
      if isDetached != (matches && !isQueued || hadCandidate) { faults.append("detached: \(isDetached)") }
      if matches, isQueued, model.keepsPartialBody { faults.append("an older partial body is kept") }
    }

    private mutating func transferEnded() {
      var ending = Download.Outcome(outcome: .failure(TransferError(.truncated, "broken")))
      let kind = random.next() % 7
      let isWanted = random.next() % 8 != 0
      switch kind {
      case 0: ending.outcome = .success(JobModelTests.summary(304))
      case 1: ending.outcome = .success(JobModelTests.summary(200))
      case 2:
        (ending.hadRange, ending.isMismatch) = (true, true)
        // A job that keeps a partial body has requested no range.
        if !model.keepsPartialBody, random.next() % 2 == 0 {
          ending.partialBody = JobModelTests.partialBody
          model.partialBodiesGiven += 1
        }
      case 3:
        ending.partialBody = JobModelTests.partialBody
        model.partialBodiesGiven += 1
      case 5, 6:
        ending.outcome = .success(JobModelTests.summary(206))
        ending.isStart = true
        if kind == 5 {
          ending.partialBody = JobModelTests.partialBody
          model.partialBodiesGiven += 1
        }
      default: break
      }
      ending.hasUsableHead = [1, 3, 5, 6].contains(kind)
      let hadTarget = model.hasTarget
      // The only failure without the head of a response.
      let isRefused = kind == 2 || kind == 4 && hadTarget
      let actions = job.transferEnded(ending, isWanted: isWanted, now: 0)
      model.state = .waiting
      if isWanted, isRefused || [3, 5].contains(kind) { model.hasTarget = false }
      var conclusions: [String] = []
      for action in actions {
        switch action {
        case .discard: break
        case .keep(let partialBody):
          job.keep(partialBody)
          model.keepsPartialBody = true
        case .retain: model.partialBodiesReturned += 1
        case .end:
          conclusions.append("end")
          (model.state, model.conclusions) = (.over, model.conclusions + 1)
        case .transferWhole:
          conclusions.append("transferWhole")
          transferStarted()
        case .transferRest:
          conclusions.append("transferRest")
          if job.takePartialBody() != nil { model.partialBodiesReturned += 1 }
          model.keepsPartialBody = false
          transferStarted()
        case .confirm:
          conclusions.append("confirm")
          if !hadTarget { faults.append("a 304 confirmed nothing") }
          (model.state, model.conclusions) = (.over, model.conclusions + 1)
        case .store:
          conclusions.append("store")
          model.state = .storing
          model.conclusions += 1
        case .attemptFailed(let error):
          conclusions.append("fail")
          job.attemptFailed(error)
          // The scheduler grants no further attempt in half of the cases.
          if random.next() % 2 == 0 { (model.state, model.conclusions) = (.over, model.conclusions + 1) }
        case .dropKept:
          if job.takePartialBody() != nil { model.partialBodiesReturned += 1 }
          model.keepsPartialBody = false
        case .detach: faults.append("a transfer's end asked for \(action)")
        }
      }
      let expected =
        !isWanted
        ? "end"
        : kind == 0 && hadTarget
          ? "confirm"
          : kind == 1 ? "store" : isRefused ? "transferWhole" : kind > 4 ? "transferRest" : "fail"
      if conclusions != [expected] { faults.append("\(conclusions), not \(expected)") }
    }
  }

  private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var word = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
      word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
      return word ^ (word >> 31)
    }
  }

  // MARK: Material

  private static var load: ActiveLoad {
    let request = LoadRequest(url: "http://a/", source: .http(try! ResourceURL("http://a/")), key: "a")
    return ActiveLoad(
      id: LoadID(slot: 0, serial: 1), request: request, partition: "", acceptedAt: .now, generation: 0,
      observer: DiscardingObserver.shared, requester: .host)
  }

  private static var candidate: Candidate {
    Candidate(
      response: StoredResponse(
        key: "a", url: "u", headers: ["etag": "\"a\""], requestTime: 0, responseTime: 0, storedAt: 0, validatedAt: 0,
        expiresAt: 0, content: ImageDescription(mediaType: "image/gif")),
      bytes: [7], location: .memory)
  }

  private static var partialBody: PartialBody {
    let response = PartialResponse(
      status: 200, headers: ["etag": "\"a\""], url: "http://a/", contentLength: 10, requestHeaders: [:], receivedAt: 0)
    return PartialBody(response: response!, body: .bytes([1, 2]), byteCount: 2, format: nil)
  }

  private static func summary(_ status: Int) -> TransferSummary {
    TransferSummary(
      head: ResponseHead(status: status, headers: [:], finalURL: "http://a/"), bytesReceived: 0, redirects: 0,
      times: TransferTimes(startedAt: .now, endedAt: .now), requestTime: 0, responseTime: 0)
  }

  private static var download: Download {
    Download(
      Download.Configuration(
        acceptsAnything: true, requestHeaders: [:], makeSink: { _, _, _, _ in fatalError("no body is received") },
        discard: { _ in }, onProgress: { _, _ in }, onEnd: { _ in }, unixTime: { 0 }))
  }
}

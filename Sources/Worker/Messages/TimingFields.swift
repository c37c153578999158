internal import LineRPC
internal import Loading

/// The members of `timing`.
extension JSONWriter {
  /// - Parameter firstByte: the time until the first byte of the response; nil if it is the total.
  mutating func members(of timeline: LoadTimeline, firstByte: Int64?) {
    member("queuedMs", thousandths: timeline.queued ?? 0)
    for phase in LoadTimeline.Phase.allCases {
      guard let duration = timeline[phase] else { continue }
      member(phase.member, thousandths: duration)
    }
    member("firstByteMs", thousandths: firstByte ?? timeline.total)
    member("totalMs", thousandths: timeline.total)
  }
}

extension LoadTimeline {
  /// The `timing` of an error, which has no `firstByteMs`.
  var members: JSONObject {
    var members: JSONObject = ["queuedMs": .number(Double(queued ?? 0) / 1000)]
    for phase in Phase.allCases {
      if let duration = self[phase] { members.set("\(phase.member)", .number(Double(duration) / 1000)) }
    }
    members.set("totalMs", .number(Double(total) / 1000))
    return members
  }
}

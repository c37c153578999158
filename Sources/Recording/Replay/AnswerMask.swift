internal import LineRPC

/// Hides the results of methods that depend on the machine as a whole. A pure value.
struct AnswerMask {
  /// Results of metrics have the figures of the process; results of traces, the size of a file of times.
  static let methods: Set<String> = ["metrics", "trace"]

  /// The ids of the unanswered requests of these methods.
  private var ids: [JSON] = []

  init() {}

  /// Notes the calls of a line of the host, which is a request or a batch.
  mutating func note(_ line: JSON) {
    switch line {
    case .array(let calls): for call in calls { note(call) }
    case .object(let call):
      if case .string(let method)? = call["method"], Self.methods.contains(method), let id = call["id"] {
        ids.append(id)
      }
    default: break
    }
  }

  /// The recorded and the replayed effect without the results of these requests, which are answered then.
  mutating func hide(in recorded: JSON, _ replayed: JSON) -> (recorded: JSON, replayed: JSON) {
    if ids.isEmpty { return (recorded, replayed) }
    var answered: [JSON] = []
    let pair = (hidden(recorded, &answered), hidden(replayed, &answered))
    ids.removeAll { answered.contains($0) }
    return pair
  }

  private func hidden(_ value: JSON, _ answered: inout [JSON]) -> JSON {
    switch value {
    case .array(let elements): return .array(elements.map { hidden($0, &answered) })
    case .object(var object):
      if let sent = object["sent"] { object.set("sent", hidden(sent, &answered)) }
      if let id = object["id"], object["result"] != nil, ids.contains(id) {
        answered.append(id)
        object.set("result", .null)
      }
      return .object(object)
    default: return value
    }
  }
}

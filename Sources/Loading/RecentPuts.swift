/// The latest images that hosts have put in: what was asked for before one was is not to replace it.
///
/// Bounded: who waits while a thousand others are put in may replace it after all.
struct RecentPuts {
  private static let most = 1000
  private var latest: [FailureMemory.Subject: LoadID] = [:]
  /// In the order of their coming, some of them out of date.
  private var order: [(subject: FailureMemory.Subject, id: LoadID)] = []

  mutating func note(_ id: LoadID, at subject: FailureMemory.Subject) {
    latest[subject] = max(id, latest[subject] ?? id)
    order.append((subject, id))
    guard order.count > 2 * Self.most else { return }
    for (subject, id) in order.prefix(Self.most) where latest[subject] == id { latest[subject] = nil }
    order.removeFirst(Self.most)
  }

  /// Whether an image was put in after that load had been sent.
  func overtook(_ load: LoadID, at subject: FailureMemory.Subject) -> Bool {
    !latest.isEmpty && latest[subject].map { load < $0 } ?? false
  }
}

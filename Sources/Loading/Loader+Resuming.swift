internal import HTTPTransport
internal import HTTPTypes

/// What broken transfers leave for the next attempt.
extension Loader {
  /// Keeps what an attempt has left, while there is room for it.
  func keep(_ beginning: Beginning?, for record: JobRecord) {
    guard let beginning else { return }
    guard beginnings.insert(beginning) else { return storage.discard(beginning.body) }
    record.beginning = beginning
    // The server has answered with another response: what is stored is not asked about again.
    record.basisIndex = nil
    record.conditions.remove("if-none-match")
    record.conditions.remove("if-modified-since")
  }

  /// What the next attempt goes on with. It is the caller's from here on.
  func takeBeginning(of record: JobRecord) -> Beginning? {
    guard let beginning = record.beginning else { return nil }
    record.beginning = nil
    beginnings.remove(beginning)
    return beginning
  }

  /// Takes out a job that comes to nothing, with what it kept.
  func forget(_ job: JobID) {
    guard let record = jobs.remove(job), let beginning = takeBeginning(of: record) else { return }
    storage.discard(beginning.body)
  }
}

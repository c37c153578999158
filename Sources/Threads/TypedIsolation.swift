extension Actor {
  /// `assumeIsolated` that keeps the type of the thrown error, unlike the standard library's.
  public nonisolated func assumeIsolatedThrowing<Value: Sendable, Failure>(
    _ work: (isolated Self) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    // The cast only drops the isolation that the check above proves, as the standard library does.
    preconditionIsolated()
    return try withoutActuallyEscaping(work) { work throws(Failure) in
      try unsafeBitCast(work, to: ((Self) throws(Failure) -> Value).self)(self)
    }
  }
}

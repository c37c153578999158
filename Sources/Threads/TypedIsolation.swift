extension Actor {
  /// `assumeIsolated` that keeps the type of what is thrown, which the one of the standard library forgets.
  public nonisolated func assumeIsolatedThrowing<Value: Sendable, Failure>(
    _ work: (isolated Self) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    // The cast only drops the isolation that the check below proves (as the standard library's does).
    preconditionIsolated()
    return try withoutActuallyEscaping(work) { work throws(Failure) in
      try unsafeBitCast(work, to: ((Self) throws(Failure) -> Value).self)(self)
    }
  }
}

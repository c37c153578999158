internal import HTTPTransport
internal import HTTPTypes

/// The permission of sites for the requests of jobs, those to the targets of redirects included, and their rate.
extension JobCoordinator {
  /// Lets an origin whose name is known start transfers, when its robots.txt is known or ignored.
  ///
  /// - Parameter lookUp: how long the lookup of its name took.
  func askForPermission(_ id: OriginID, _ origin: Origin, after lookUp: Duration = .zero) {
    guard robots.isObeyed else { return scheduler.nameFound(id, after: lookUp) }
    robots.ask(origin) { [weak self] permission in
      guard let self else { return }
      self.scheduler.setCrawlDelay(permission.rules.crawlDelay, of: id)
      for job in self.scheduler.queuedJobs(of: id) { _ = self.isPermitted(job) }
      self.scheduler.nameFound(id, after: lookUp)
    }
  }

  /// Whether the permission of the job's origin allows its transfer, as far as is known. If not, the job ends.
  func isPermitted(_ id: JobID) -> Bool {
    guard robots.isObeyed, case .http(let url)? = jobs[id]?.request.source else { return true }
    guard let permission = robots.permission(of: url.origin) else {
      scheduler.permissionExpired(for: id)
      return true
    }
    guard let refusal = permission.refusal(of: url) else { return true }
    fail(id, refusal)
    return false
  }

  /// Whether redirects are checked before they are followed.
  var checksRedirects: Bool { robots.isObeyed || scheduler.limits.startInterval != nil }

  /// Lets the transfer of a job follow a redirect if robots.txt of the target's origin allows it, at the rate of that
  /// origin. Nothing is sent to the target before. A redirect that is refused ends the transfer.
  func redirected(_ id: JobID, to target: String) {
    guard let transfer = jobs[id]?.transfer else { return }
    firstByteReceived(id)
    guard let url = try? ResourceURL(target) else {
      return refuse(id, LoadError(.redirects, "the target of the redirect is not a valid URL"))
    }
    guard robots.isObeyed else { return follow(id, to: url, crawlDelay: nil) }
    robots.ask(url.origin) { [weak self] permission in
      guard let self, self.jobs[id]?.transfer == transfer else { return }
      if let refusal = permission.refusal(of: url, as: "the redirect to \(url.redacted)") {
        return self.refuse(id, refusal)
      }
      self.follow(id, to: url, crawlDelay: permission.rules.crawlDelay)
    }
  }

  private func follow(_ id: JobID, to url: ResourceURL, crawlDelay: Duration?) {
    switch scheduler.redirect(id, to: url.origin, crawlDelay: crawlDelay, now: LoadingActor.now) {
    case .now: followRedirect(id)
    case .later: break
    case .tooLate(let wait):
      let time = "\(wait.components.seconds + 1) s"
      var error = LoadError(
        .overloaded, "the rate of \(url.origin) allows the redirect to \(url.redacted) in \(time) only")
      error.retryAfter = wait
      refuse(id, error)
    }
  }

  /// Sends the request to the target of a redirect.
  func followRedirect(_ id: JobID) { if let transfer = jobs[id]?.transfer { transport.resume(transfer) } }

  private func refuse(_ id: JobID, _ error: LoadError) {
    guard let transfer = jobs[id]?.transfer else { return }
    jobs[id]?.download?.refuse(with: error)
    transport.cancel(transfer)
  }
}

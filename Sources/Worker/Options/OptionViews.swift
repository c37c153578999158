internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Loading
internal import Platform

/// The configurations of the modules that the options define.
extension Options {
  /// `maxConcurrent`, limited by the available file descriptors.
  private var concurrentTransfers: TransferLimit {
    maxConcurrent.count.map { .fixed(min($0, DescriptorBudget.current.transfers)) } ?? .auto
  }

  var loaderSettings: LoaderSettings {
    var settings = LoaderSettings()
    settings.limits.maxConcurrent = concurrentTransfers
    let budget = DescriptorBudget.current
    settings.limits.maxTransfers = budget.transfers
    settings.limits.maxFinishing = min(settings.limits.maxFinishing, budget.finishing)
    settings.limits.maxPerOrigin = maxPerHost
    settings.limits.maxQueued = maxQueued
    if maxConnectionsPerHost > 0 { settings.limits.maxConnectionsPerOrigin = maxConnectionsPerHost }
    settings.limits.startInterval = rate.flatMap(RequestRate.interval)
    settings.limits.maxUndecoded = 2 * ((maxConcurrent.count ?? 32) + decoderSettings.count)
    settings.limits.order = order
    settings.memoryLimit = memoryLimit
    settings.diskLimit = diskLimit
    settings.maxAge = Int(maxAge.milliseconds / 1000)
    settings.maxRedirects = maxRedirects
    settings.maxPixels = Int(maxPixels)
    settings.failedTimeToLive = failedTimeToLive
    if robots == .obey { settings.robotsUserAgent = userAgent }
    return settings
  }

  var transportConfiguration: TransportConfiguration {
    var configuration = TransportConfiguration(userAgent: userAgent)
    configuration.connectTimeout = connectTimeout.limit
    configuration.resolver = resolver
    configuration.minRate = minRate
    configuration.network = network
    configuration.proxy = proxy
    configuration.cookies = cookieFile
    configuration.insecure = insecure
    configuration.fieldsLeftOut = headersLeftOut
    let maxTransfers = loaderSettings.limits.maxWindow
    configuration.maxConnections = min(max(128, 4 * maxTransfers), DescriptorBudget.current.connections)
    return configuration
  }

  var decoderSettings: DecoderSettings {
    DecoderSettings(
      count: decoders > 0 ? decoders : Processors.count, timeout: decodeTimeout.limit,
      memoryLimit: Int(decodeMemory), lifetime: decoderLifetime)
  }

  /// The header fields of every request: those that the user set, and defaults for `accept` and `user-agent`.
  var requestHeaders: HeaderFields {
    var defaults: HeaderFields = ["accept": "image/*,*/*;q=0.8"]
    // An empty user agent is not sent, as in curl.
    if !userAgent.isEmpty { defaults["user-agent"] = userAgent }
    for name in headersLeftOut { defaults.remove(name) }
    let sent = headers.compactMap { text in
      if case .sent(let field) = HeaderOption(text) { field } else { nil }
    }
    return defaults.replacing(HeaderFields(sent))
  }

  private var headersLeftOut: Set<String> {
    Set(
      headers.compactMap { text in
        if case .leftOut(let name) = HeaderOption(text) { name } else { nil }
      })
  }

  /// The fraction of the file system that must stay free.
  var minFreeFraction: Double { Double(minFree) / 100 }
}

extension Duration {
  /// The limit of a timeout option; zero stands for no limit.
  var limit: Duration { self == .zero ? .milliseconds(Quantity.maxMilliseconds) : self }
}

extension HeaderFields {
  /// These fields, with `replacements` instead of fields of the same names.
  func replacing(_ replacements: HeaderFields) -> HeaderFields {
    HeaderFields(lines.filter { line in !replacements.lines.contains { $0.name == line.name } } + replacements.lines)
  }
}

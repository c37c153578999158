internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import Loading

/// The options as each room wants them.
extension Options {
  var loaderSettings: LoaderSettings {
    var settings = LoaderSettings()
    settings.limits.maxConcurrent = maxConcurrent
    settings.limits.maxPerOrigin = maxPerHost
    settings.limits.maxQueued = maxQueued
    settings.limits.order = order
    settings.memoryLimit = memoryLimit
    settings.maxAge = Int(maxAge.milliseconds / 1000)
    settings.maxRedirects = maxRedirects
    settings.failedTimeToLive = failedTimeToLive
    return settings
  }

  var transportConfiguration: TransportConfiguration {
    var configuration = TransportConfiguration(userAgent: userAgent)
    configuration.connectTimeout = connectTimeout
    configuration.network = network == .public ? .publicOnly : .any
    configuration.proxy = proxy.isEmpty ? nil : proxy
    configuration.cookiesFile = cookies
    configuration.insecure = insecure
    configuration.keptConnections = max(128, maxConcurrent)
    return configuration
  }

  /// What every request sends: what the user set, else images before anything else.
  var requestHeaders: HeaderFields {
    var fields: HeaderFields = ["accept": "image/*,*/*;q=0.8", "user-agent": userAgent]
    for field in headers.compactMap(HeaderField.init(line:)) { fields[field.name] = field.value }
    return fields
  }

  var ignoredQuery: QueryNameFilter { QueryNameFilter(keyIgnoredQuery) }

  var verification: DiskTier.Verification {
    switch verify {
    case .random: .random
    case .always: .always
    case .never: .never
    }
  }
}

extension HeaderFields {
  /// These fields with `others` in their place, but only those of `others` that differ from `defaults`.
  func merging(_ others: HeaderFields, under defaults: HeaderFields) -> HeaderFields {
    var merged = others
    for line in lines where defaults[line.name] != line.value { merged[line.name] = line.value }
    return merged
  }
}

internal import Loading

/// The text forms of metrics. A parser of one form misreads the types of the other: in OpenMetrics a counter `a` has
/// the sample `a_total`, in the older form of Prometheus it is named `a_total` altogether.
enum MetricsText: Sendable {
  /// OpenMetrics 1.0, for scrapers.
  case openMetrics
  /// Prometheus' text format 0.0.4, the only one that node_exporter's textfile collector reads.
  case prometheus

  static let contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

  /// The text of the families.
  ///
  /// - Parameter label: a label of each sample.
  func text(of families: [MetricFamily], label: (name: String, value: String)? = nil) -> String {
    var text = ""
    text.reserveCapacity(48 << 10)
    for family in families {
      writeHead(of: family, to: &text)
      for sample in family.samples {
        let labels = (label.map { [$0] } ?? []) + sample.labels
        let names = labels.map { "\($0.name)=\"\(Self.escape($0.value, quotes: true))\"" }
        let suffix =
          switch family.kind {
          case .counter: "_total"
          case .info: "_info"
          case .gauge, .histogram: ""
          }
        switch sample.value {
        case .integer(let value): Self.write(family.name + suffix, names, "\(value)", to: &text)
        case .number(let value): Self.write(family.name + suffix, names, "\(value)", to: &text)
        case .histogram(let histogram): Self.write(histogram, family.name, names, to: &text)
        }
      }
    }
    if self == .openMetrics { text += "# EOF\n" }
    return text
  }

  private func writeHead(of family: MetricFamily, to text: inout String) {
    var (name, type) = (family.name, family.kind.rawValue)
    if self == .prometheus {
      switch family.kind {
      case .counter: name += "_total"
      case .info: (name, type) = (name + "_info", "gauge")
      case .gauge, .histogram: break
      }
    }
    text += "# TYPE \(name) \(type)\n"
    if self == .openMetrics, let unit = family.unit { text += "# UNIT \(name) \(unit)\n" }
    text += "# HELP \(name) \(Self.escape(family.help, quotes: self == .openMetrics))\n"
  }

  /// The counts of the buckets are cumulative.
  private static func write(
    _ histogram: DurationHistogram, _ name: String, _ labels: [String], to text: inout String
  ) {
    let bounds = DurationHistogram.bounds.map { "\(Double($0) / 1_000_000)" } + ["+Inf"]
    var count = 0
    for (bound, own) in zip(bounds, histogram.counts) {
      count += own
      write(name + "_bucket", labels + ["le=\"\(bound)\""], "\(count)", to: &text)
    }
    write(name + "_sum", labels, "\(Double(histogram.sum) / 1_000_000)", to: &text)
    write(name + "_count", labels, "\(count)", to: &text)
  }

  private static func write(_ name: String, _ labels: [String], _ value: String, to text: inout String) {
    text += name
    if !labels.isEmpty {
      text += "{"
      text += labels.joined(separator: ",")
      text += "}"
    }
    text += " \(value)\n"
  }

  private static func escape(_ text: String, quotes: Bool) -> String {
    // By scalars, since CR and LF are one character.
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case "\\": escaped += #"\\"#
      case "\n": escaped += #"\n"#
      case "\"" where quotes: escaped += #"\""#
      default: escaped.unicodeScalars.append(scalar)
      }
    }
  }
}

internal import Loading

/// A metric with its samples, in the data model of OpenMetrics 1.0.
struct MetricFamily: Sendable {
  enum Kind: String, Sendable {
    /// Its samples have the suffix `_total`.
    case counter
    case gauge
    case histogram
    /// Has the value 1, and says something by its labels. Its samples have the suffix `_info`.
    case info
  }

  struct Sample: Sendable {
    var labels: [(name: String, value: String)] = []
    var value: Value
  }

  enum Value: Sendable {
    case integer(Int64)
    case number(Double)
    case histogram(DurationHistogram)
  }

  /// The name without the suffixes of the samples. Ends in the unit, if there is one.
  let name: String
  let kind: Kind
  let help: String
  let samples: [Sample]

  init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
    (self.name, self.kind, self.help, self.samples) = (name, kind, help, samples)
  }

  init(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
    self.init(name, kind, help, [Sample(value: .integer(Int64(value)))])
  }

  init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
    self.init(name, kind, help, [Sample(value: .number(value))])
  }

  /// A family with one label, and a sample for each of its values.
  init(
    _ name: String, _ kind: Kind, _ help: String, by label: String,
    _ values: [(value: String, count: some BinaryInteger)]
  ) {
    self.init(
      name, kind, help,
      values.map { Sample(labels: [(label, $0.value)], value: .integer(Int64($0.count))) })
  }

  /// The base unit in which the values are measured, if they have one.
  var unit: String? { ["seconds", "bytes"].first { name.hasSuffix("_" + $0) } }
}

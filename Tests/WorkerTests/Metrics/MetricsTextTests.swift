import Loading
import Testing

@testable import Worker

@Suite struct MetricsTextTests {
  private let families = [
    MetricFamily("a_build", .info, "Version.", [MetricFamily.Sample(labels: [("version", "1")], value: .integer(1))]),
    MetricFamily("a_loads", .counter, "Loads.", by: "outcome", [("good", 3), ("bad", 0)]),
    MetricFamily("a_cpu_seconds", .counter, "Time.", 1.5),
    MetricFamily("a_tier_bytes", .gauge, "Size.", 1 << 40),
  ]

  @Test func `OpenMetrics names counters without their suffix, tells units and has an end`() {
    #expect(
      MetricsText.openMetrics.text(of: families) == """
        # TYPE a_build info
        # HELP a_build Version.
        a_build_info{version="1"} 1
        # TYPE a_loads counter
        # HELP a_loads Loads.
        a_loads_total{outcome="good"} 3
        a_loads_total{outcome="bad"} 0
        # TYPE a_cpu_seconds counter
        # UNIT a_cpu_seconds seconds
        # HELP a_cpu_seconds Time.
        a_cpu_seconds_total 1.5
        # TYPE a_tier_bytes gauge
        # UNIT a_tier_bytes bytes
        # HELP a_tier_bytes Size.
        a_tier_bytes 1099511627776
        # EOF

        """)
  }

  @Test func `Prometheus' form names counters with their suffix, and the label comes first in each sample`() {
    #expect(
      MetricsText.prometheus.text(of: families, label: ("worker", "one")) == """
        # TYPE a_build_info gauge
        # HELP a_build_info Version.
        a_build_info{worker="one",version="1"} 1
        # TYPE a_loads_total counter
        # HELP a_loads_total Loads.
        a_loads_total{worker="one",outcome="good"} 3
        a_loads_total{worker="one",outcome="bad"} 0
        # TYPE a_cpu_seconds_total counter
        # HELP a_cpu_seconds_total Time.
        a_cpu_seconds_total{worker="one"} 1.5
        # TYPE a_tier_bytes gauge
        # HELP a_tier_bytes Size.
        a_tier_bytes{worker="one"} 1099511627776

        """)
  }

  @Test func `the buckets of a histogram are cumulative`() {
    var histogram = DurationHistogram()
    for duration: Int64 in [50, 100, 300, 2_000_000_000] { histogram.add(microseconds: duration) }
    let family = MetricFamily("a_seconds", .histogram, "Time.", [MetricFamily.Sample(value: .histogram(histogram))])
    let lines = MetricsText.openMetrics.text(of: [family]).split(separator: "\n").map(String.init)
    #expect(
      lines.prefix(7) == [
        "# TYPE a_seconds histogram", "# UNIT a_seconds seconds", "# HELP a_seconds Time.",
        #"a_seconds_bucket{le="0.0001"} 2"#, #"a_seconds_bucket{le="0.00025"} 2"#, #"a_seconds_bucket{le="0.0005"} 3"#,
        #"a_seconds_bucket{le="0.001"} 3"#,
      ])
    #expect(
      lines.suffix(5) == [
        #"a_seconds_bucket{le="100.0"} 3"#, #"a_seconds_bucket{le="+Inf"} 4"#, "a_seconds_sum 2000.00045",
        "a_seconds_count 4", "# EOF",
      ])
  }

  @Test func `labels and help texts are escaped as each form demands`() {
    let family = MetricFamily(
      "a", .gauge, "\"B\"\\\n", [MetricFamily.Sample(labels: [("b", "c\"\\\r\n")], value: .integer(1))])
    let sample = "a{b=\"c\\\"\\\\\r\\n\"} 1\n"
    #expect(
      MetricsText.openMetrics.text(of: [family]) == "# TYPE a gauge\n# HELP a \\\"B\\\"\\\\\\n\n" + sample + "# EOF\n")
    #expect(MetricsText.prometheus.text(of: [family]) == "# TYPE a gauge\n# HELP a \"B\"\\\\\\n\n" + sample)
  }
}

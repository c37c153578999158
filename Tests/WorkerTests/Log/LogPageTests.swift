import Foundation
import Testing

@testable import Worker

/// The table of `examples/operating/log.md`.
struct LogPageTests {
  private struct Row: Equatable {
    let event: String
    let level: String
    let fields: [String]
  }

  private func page() throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    return try String(contentsOf: root.appending(path: "examples/operating/log.md"), encoding: .utf8)
  }

  /// The cells of the rows of the table under a heading.
  private func rows(of heading: String) throws -> [[String]] {
    let section = try #require(try page().components(separatedBy: "\n## \(heading)\n").dropFirst().first)
    return section.components(separatedBy: "\n## ")[0].split(separator: "\n").filter { $0.hasPrefix("| `") }
      .map { $0.components(separatedBy: " | ").map { $0.trimmingCharacters(in: ["|", " "]) } }
  }

  private func names(in cell: String) -> [String] {
    cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
      .map { String($0.element) }
  }

  @Test func `the page lists each event with its level and its fields`() throws {
    let listed = try rows(of: "Events").map {
      Row(event: names(in: $0[0])[0], level: names(in: $0[1])[0], fields: names(in: $0[3]))
    }
    let actual = LogEvent.Name.allCases.map {
      Row(event: $0.rawValue, level: $0.level.rawValue, fields: $0.fields.map(\.rawValue))
    }
    #expect(listed == actual)
  }

  @Test func `the page explains each field once`() throws {
    let listed = try rows(of: "Fields").flatMap { names(in: $0[0]) }
    let always = ["time", "level", "event", "message", "pid", "omitted"]
    #expect(listed == always + LogEvent.Field.allCases.map(\.rawValue))
    #expect(
      LogEvent.Field.allCases.allSatisfy { field in LogEvent.Name.allCases.contains { $0.fields.contains(field) } })
  }
}

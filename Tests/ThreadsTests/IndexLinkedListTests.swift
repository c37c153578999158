import Testing
import Threads

struct IndexLinkedListTests {
  /// A list and its links, read in both directions.
  private struct Row {
    var chain = IndexLinkedList()
    var links = [IndexLinkedList.Link](repeating: IndexLinkedList.Link(), count: 16)

    mutating func append(_ slot: Int32) { chain.append(slot, in: &links) }
    mutating func prepend(_ slot: Int32) { chain.prepend(slot, in: &links) }
    mutating func remove(_ slot: Int32) { chain.remove(slot, in: &links) }

    var forwards: [Int32] { Array(chain.elements(in: links)) }
    var backwards: [Int32] {
      Array(sequence(first: chain.last) { links[Int($0)].previous }.prefix { $0 != IndexLinkedList.none })
    }
  }

  @Test func `an empty list has no ends`() {
    let chain = IndexLinkedList()
    #expect(chain.isEmpty)
    #expect(chain.first == IndexLinkedList.none)
    #expect(chain.last == IndexLinkedList.none)
  }

  @Test func `elements can be removed from the front, the back and the middle`() {
    var row = Row()
    for slot in Int32(0)..<5 { row.append(slot) }
    row.prepend(9)
    #expect(row.forwards == [9, 0, 1, 2, 3, 4])
    for (slot, left) in [(9, [0, 1, 2, 3, 4]), (4, [0, 1, 2, 3]), (1, [0, 2, 3])] as [(Int32, [Int32])] {
      row.remove(slot)
      #expect(row.forwards == left)
      #expect(row.backwards == left.reversed())
      #expect(row.chain.count == left.count)
    }
    for slot in [0, 2, 3] as [Int32] { row.remove(slot) }
    #expect(row.chain.isEmpty && row.chain.first == IndexLinkedList.none && row.chain.last == IndexLinkedList.none)
  }

  @Test func `a list agrees with an array under random operations`() {
    var row = Row()
    var array: [Int32] = []
    for _ in 0..<5000 {
      let slot = Int32.random(in: 0..<16)
      if let index = array.firstIndex(of: slot) {
        row.remove(slot)
        array.remove(at: index)
      } else if Bool.random() {
        row.append(slot)
        array.append(slot)
      } else {
        row.prepend(slot)
        array.insert(slot, at: 0)
      }
      guard row.forwards == array, row.backwards == array.reversed(), row.chain.count == array.count else {
        Issue.record("\(row.forwards) and \(row.backwards) instead of \(array)")
        return
      }
    }
  }
}

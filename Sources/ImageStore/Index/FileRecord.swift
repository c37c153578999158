/// The values of a row that eviction and clearing need.
struct FileRecord: Equatable {
  var id: Int64
  var file: String
  var allocated: Int64
  var usedAt: Int
  var deliveredAt: Int
}

extension FileRecord {
  init(_ row: borrowing Row) {
    let id = row.integer(0)
    self.init(
      id: id, file: FileName(id: id, digest: row.bytes(1), format: row.optionalText(2)).path, allocated: row.integer(3),
      usedAt: row.int(4), deliveredAt: row.int(5))
  }
}

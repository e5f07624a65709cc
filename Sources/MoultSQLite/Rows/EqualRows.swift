import MoultBasics

/// The rows of a new table without a key, looked up by their content.
final class EqualRows {
    private let map: ColumnMap
    private let rows: StoredRows
    private let connection: Connection
    /// Reads an old row a second time, because hashing converts the text of UTF-16 databases in place.
    private let old: StoredRows
    private let identity: [Int32]
    /// The rowids by a digest of the mapped columns; nil until first needed.
    private var rowIDs: [KeyDigest: [Int64]]?

    init(
        _ map: ColumnMap, _ old: TableLayout, _ oldConnection: Connection, in rows: StoredRows, _ connection: Connection
    ) throws {
        (self.map, self.rows, self.connection) = (map, rows, connection)
        self.old = try StoredRows(old, oldConnection)
        // The first column of a selected row is its rowid.
        identity = old.isWithoutRowID ? old.primaryKey.map { Int32($0 + 1) } : [0]
    }

    /// Removes from the index, and returns, the rowid of a new row with the same digest as this old row; the caller must compare
    /// the content. Nil if none is left.
    func next(_ row: borrowing Statement) throws -> Int64? {
        if rowIDs == nil { rowIDs = try index() }
        let digest = try old.withRow(keyIn: row, identity) { [old, map] in
            try KeyDigest(of: $0, map.pairs.map { old.first + Int32($0.old) })
        }
        guard let digest else { return nil }
        return rowIDs?[digest]?.popLast()
    }

    private func index() throws -> [KeyDigest: [Int64]] {
        let layout = rows.layout
        let columns = layout.identity + map.pairs.map { layout.columnsSQL[$0.new] }
        var all: [KeyDigest: [Int64]] = [:]
        let sql = "SELECT \(columns.joined(separator: ", ")) FROM \(layout.sql) ORDER BY 1 DESC"
        try connection.withStatement(sql) { row in
            while try row.step() {
                all[try KeyDigest(of: row, 1..<Int32(columns.count)), default: []].append(row.int64(0))
            }
        }
        return all
    }
}

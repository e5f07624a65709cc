import MoultBasics
import MoultSQLite

/// Looks up by content the rows of a new table that no key identifies, because the table has no key, or because a row has a
/// NULL in each key, and NULLs never conflict.
final class EqualRows {
    private let map: ColumnMap
    private let rows: StoredRows
    private let connection: Connection
    /// Reads an old row a second time, because hashing converts the text of UTF-16 databases in place.
    private let old: StoredRows
    private let identity: [Int32]
    /// The columns of an old row for each unique key of the new table; empty if the row does not have all of them.
    private let keys: [[Int32]]
    /// The rows by a digest of the mapped columns; nil until first needed.
    private var index: DigestTable?

    init(
        _ map: ColumnMap, _ old: TableLayout, _ oldConnection: Connection, in rows: StoredRows, _ connection: Connection
    ) throws {
        (self.map, self.rows, self.connection) = (map, rows, connection)
        self.old = try StoredRows(old, oldConnection)
        // The first column of a selected row is its rowid.
        let places = Dictionary(map.pairs.map { ($0.new, Int32($0.old + 1)) }) { first, _ in first }
        keys = try rows.layout.uniqueKeys(in: connection).map { key in
            let columns = key.compactMap { places[$0] }
            return columns.count == key.count ? columns : []
        }
        identity = old.isWithoutRowID ? old.primaryKey.map { Int32($0 + 1) } : [0]
    }

    /// Finds a new row with the same digest as this old row, removes it from the index, and returns its rowid. The caller must
    /// compare the content. Returns nil if no such row is left, or if a key identifies the old row.
    func next(_ row: borrowing Statement) throws -> Int64? {
        if isIdentified(row) { return nil }
        if index == nil { index = try readAll() }
        let digest = try old.withRow(keyIn: row, identity) { [old, map] in
            try KeyDigest(of: $0, map.pairs.map { old.first + Int32($0.old) })
        }
        guard let digest else { return nil }
        return try index?.take(of: digest)
    }

    /// Returns whether a key of the new table identifies the old row.
    func isIdentified(_ row: borrowing Statement) -> Bool {
        for key in keys where !key.isEmpty {
            var hasNull = false
            for column in key where row.isNull(column) { hasNull = true }
            if !hasNull { return true }
        }
        return false
    }

    private func readAll() throws -> DigestTable {
        let layout = rows.layout
        let columns = layout.identity + map.pairs.map { layout.columnsSQL[$0.new] }
        let all = DigestTable()
        // A key with an expression or a generated column may be NULL for any row.
        let keyless = try layout.uniqueKeys(in: connection).filter { !$0.isEmpty }.map { key in
            "(\(key.map { "\(layout.columnsSQL[$0]) IS NULL" }.joined(separator: " OR ")))"
        }
        let condition = keyless.isEmpty ? "" : " WHERE \(keyless.joined(separator: " AND "))"
        let sql = "SELECT \(columns.joined(separator: ", ")) FROM \(layout.rows.sql)\(condition)"
        try connection.withStatement(sql) { row in
            while try row.step() {
                try all.add(row.int64(0), of: KeyDigest(of: row, 1..<Int32(columns.count)))
            }
        }
        return all
    }
}

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
    /// The columns of an old row for each unique key of the new table of which the row has all columns.
    private let keys: [[Int32]]
    /// The rows by a digest of the mapped columns; nil until first needed.
    private var index: DigestTable?

    init(
        _ map: ColumnMap, _ old: TableLayout, _ oldConnection: Connection, in rows: StoredRows, _ connection: Connection
    ) throws {
        (self.map, self.rows, self.connection) = (map, rows, connection)
        self.old = try StoredRows(old, oldConnection)
        keys = try rows.layout.uniqueKeys(in: connection).filter { !$0.isEmpty }.compactMap(map.places)
    }

    /// Finds a new row with the same digest as this old row, removes it from the index, and returns its rowid. The caller must
    /// compare the content. Returns nil if no such row is left, or if a key identifies the old row.
    func next(_ row: borrowing Statement) throws -> Int64? {
        if isIdentified(row) { return nil }
        if index == nil { index = try readAll() }
        let digest = try old.withRow(keyIn: row, old.layout.identityPlaces) { [old, map] in
            try KeyDigest(of: $0, map.pairs.map { old.first + Int32($0.old) })
        }
        guard let digest else { return nil }
        return try index?.take(of: digest)
    }

    /// Returns whether a key of the new table identifies the old row.
    func isIdentified(_ row: borrowing Statement) -> Bool {
        for key in keys {
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
            while try row.step() { try all.add(row.int64(0), of: KeyDigest(of: row, 1..<Int32(columns.count))) }
        }
        return all
    }
}

/// The rows of a table as shipped by a release, to check whether they contain rows of an older or changed copy of the table.
final class ShippedRows {
    /// Finds shipped rows by their key; all of them if they have none.
    private let find: RowStatement
    private let rows: StoredRows?
    /// Finds the shipped rows that no key identifies; nil if a key identifies every row.
    private let equals: EqualRows?
    /// Selects whether a copy's row has a value, other than NULL and the default, in a column that the shipped table lacks.
    private let ownValue: RowStatement
    private let map: ColumnMap
    private let encoding: DatabaseHeader.TextEncoding?

    /// Nil if no row of the copy can equal a shipped one, because the table or one of its columns is missing.
    init?(_ copy: TableLayout, _ copyConnection: Connection, in shipped: Connection) throws {
        guard let layout = try TableLayout.of(SQLName(copy.name), in: shipped) else { return nil }
        map = try ColumnMap(copy, layout, renamed: [:])
        guard map.pairs.count == layout.columns.count, !copy.identity.isEmpty else { return nil }
        let declared = layout.rowIDColumn.map { [$0] } ?? layout.primaryKey
        let key = declared.isEmpty ? try layout.uniqueKeys(in: shipped).first { !$0.isEmpty } ?? [] : declared
        if key.isEmpty, layout.rowIDName == nil { return nil }
        // VACUUM changes implicit rowids, so rows without a key are looked up by their content.
        let isByContent = !layout.isWithoutRowID && layout.rowIDColumn == nil && layout.rowIDName != nil
        let rows = isByContent ? try StoredRows(layout, shipped) : nil
        equals = if let rows { try EqualRows(map, copy, copyConnection, in: rows, shipped) } else { nil }
        self.rows = rows
        let columns = layout.columnsSQL.joined(separator: ", ")
        find = try RowStatement(
            "SELECT \(columns) FROM \(layout.sql)", where: key.map { quoteIdentifier(layout.columns[$0].name) },
            are: map.places(key) ?? [], in: shipped)
        ownValue = try RowStatement(
            "SELECT \(map.losesValue(copy, countsGenerated: false)) FROM \(copy.sql)", where: copy.identity,
            are: copy.identityPlaces, in: copyConnection)
        encoding = try Connection.commonEncoding(copyConnection, shipped)
    }

    /// Returns whether exactly this row was shipped, and the app has set no further column of it. Its rowid or NULL comes first,
    /// then all stored columns.
    func contains(_ row: borrowing Statement) throws -> Bool { try wasShipped(row) && !hasOwnValue(row) }

    private func wasShipped(_ row: borrowing Statement) throws -> Bool {
        if let rows, let equals, !equals.isIdentified(row) {
            while let rowID = try equals.next(row) {
                if try rows.withRow(.rowID(rowID), { try isEqual(row, $0, from: rows.first) }) == true { return true }
            }
            return false
        }
        // A key with NULLs may occur more than once.
        return try find.first(like: row) { try isEqual(row, $0, from: 0) ? true : nil } ?? false
    }

    private func hasOwnValue(_ row: borrowing Statement) throws -> Bool {
        try ownValue.first(like: row) { $0.int64(0) != 0 } ?? false
    }

    private func isEqual(_ row: borrowing Statement, _ found: borrowing Statement, from first: Int32) throws -> Bool {
        for pair in map.pairs {
            guard try row.stores(Int32(pair.old + 1), as: found, first + Int32(pair.new), encoding) else {
                return false
            }
        }
        return true
    }
}

import MoultBasics
import MoultSQLite

/// The rows of a table as shipped by a release, to check whether they contain rows of an older or changed copy of the table.
final class ShippedRows {
    /// Finds a shipped row by its key.
    private let find: Statement
    /// Finds a shipped row by its rowid.
    private let findByRowID: Statement
    private let map: ColumnMap
    /// The columns of a copy's row that contain the identity of a shipped row.
    private let keyColumns: [Int32]
    /// Finds the shipped rows that no key identifies; nil if a key identifies every row.
    private let equals: EqualRows?
    /// Selects whether a copy's row has a value, other than NULL and the default, in a column that the shipped table lacks.
    private let ownValue: Statement
    /// The columns of a copy's row that contain its identity.
    private let identity: [Int32]
    private let encodings: TextEncodings

    /// Nil if no row of the copy can equal a shipped one, because the table or one of its columns is missing.
    init?(_ copy: TableLayout, _ copyConnection: Connection, in shipped: Connection) throws {
        guard let layout = try TableLayout.of(SQLName(copy.name), in: shipped) else { return nil }
        map = try ColumnMap(copy, layout, renamed: [:])
        guard map.pairs.count == layout.columns.count, !copy.identity.isEmpty else { return nil }
        let places = Dictionary(map.pairs.map { ($0.new, Int32($0.old + 1)) }) { first, _ in first }
        let declared = layout.rowIDColumn.map { [$0] } ?? layout.primaryKey
        let key = declared.isEmpty ? try layout.uniqueKeys(in: shipped).first { !$0.isEmpty } ?? [] : declared
        if key.isEmpty, layout.rowIDName == nil { return nil }
        keyColumns = key.compactMap { places[$0] }
        // VACUUM changes implicit rowids, so rows without a key are looked up by their content.
        let byContent = layout.isWithoutRowID || layout.rowIDColumn != nil ? nil : layout.rowIDName
        equals =
            byContent == nil
            ? nil : try EqualRows(map, copy, copyConnection, in: StoredRows(layout, shipped), shipped)
        let columns = "SELECT \(layout.columnsSQL.joined(separator: ", ")) FROM \(layout.sql)"
        let names = key.map { quoteIdentifier(layout.columns[$0].name) }
        find = try shipped.statement(names.isEmpty ? columns : "\(columns) WHERE \(Self.condition(names))")
        findByRowID = try shipped.statement("\(columns) WHERE \(byContent ?? "NULL") = ?1")
        identity = copy.isWithoutRowID ? copy.primaryKey.map { Int32($0 + 1) } : [0]
        ownValue = try copyConnection.statement(
            "SELECT \(map.losesValue(copy, countsGenerated: false)) FROM \(copy.sql) WHERE \(Self.condition(copy.identity))"
        )
        encodings = try TextEncodings(copyConnection, shipped)
    }

    private static func condition(_ names: [String]) -> String {
        names.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
    }

    /// Returns whether exactly this row was shipped, and the app has set no further column of it. Its rowid or NULL comes first,
    /// then all stored columns.
    func contains(_ row: borrowing Statement) throws -> Bool { try wasShipped(row) && !hasOwnValue(row) }

    private func wasShipped(_ row: borrowing Statement) throws -> Bool {
        if let equals, !equals.isIdentified(row) {
            defer { findByRowID.reset() }
            while let rowID = try equals.next(row) {
                findByRowID.reset()
                try findByRowID.bind(rowID, at: 1)
                if try findByRowID.step(), try isEqual(row, findByRowID) { return true }
            }
            return false
        }
        defer { find.reset() }
        for (index, column) in keyColumns.enumerated() { try find.bind(row, column, at: Int32(index + 1)) }
        // A key with NULLs may occur more than once.
        while try find.step() { if try isEqual(row, find) { return true } }
        return false
    }

    private func hasOwnValue(_ row: borrowing Statement) throws -> Bool {
        defer { ownValue.reset() }
        for (index, column) in identity.enumerated() { try ownValue.bind(row, column, at: Int32(index + 1)) }
        return try ownValue.step() && ownValue.int64(0) != 0
    }

    private func isEqual(_ row: borrowing Statement, _ found: borrowing Statement) throws -> Bool {
        for pair in map.pairs {
            let isSame = try row.stores(
                Int32(pair.old + 1), as: found, Int32(pair.new), encodings)
            if !isSame { return false }
        }
        return true
    }
}

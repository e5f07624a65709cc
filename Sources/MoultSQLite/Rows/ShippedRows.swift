import MoultBasics

/// The rows of a table as shipped by a release, to check whether they contain rows of an older or changed copy of the table.
final class ShippedRows {
    private let find: Statement
    private let map: ColumnMap
    /// The columns of a copy's row that contain the identity of a shipped row.
    private let keyColumns: [Int32]
    /// Finds the shipped rows of a table that has no declared key; nil if it has one.
    private let equals: EqualRows?
    /// Selects whether a copy's row has a value, other than NULL and the default, in a column that the shipped table lacks.
    private let ownValue: Statement
    /// The columns of a copy's row that contain its identity.
    private let identity: [Int32]
    private let encodingsDiffer: Bool

    /// Nil if no row of the copy can equal a shipped one, because the table or one of its columns is missing.
    init?(_ copy: TableLayout, _ copyConnection: Connection, in shipped: Connection) throws {
        guard let layout = try TableLayout.of(SQLName(copy.name), in: shipped) else { return nil }
        map = try ColumnMap(copy, layout, renamed: [:])
        guard map.pairs.count == layout.columns.count, !copy.identity.isEmpty else { return nil }
        let places = Dictionary(map.pairs.map { ($0.new, Int32($0.old + 1)) }) { first, _ in first }
        let declared = layout.rowIDColumn.map { [$0] } ?? layout.primaryKey
        let key = declared.isEmpty ? layout.uniqueKeys.first { !$0.isEmpty } ?? [] : declared
        let names: [String]
        if key.isEmpty {
            guard let name = layout.rowIDName else { return nil }
            (keyColumns, names) = ([], [name])
            // VACUUM may change implicit rowids, so these rows are looked up by their content.
            equals = try EqualRows(map, copy, copyConnection, in: StoredRows(layout, shipped), shipped)
        } else {
            keyColumns = key.compactMap { places[$0] }
            names = key.map { quoteIdentifier(layout.columns[$0].name) }
            equals = nil
        }
        func condition(_ names: [String]) -> String {
            names.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
        }
        find = try shipped.statement(
            "SELECT \(layout.columnsSQL.joined(separator: ", ")) FROM \(layout.sql) WHERE \(condition(names))")
        identity = copy.isWithoutRowID ? copy.primaryKey.map { Int32($0 + 1) } : [0]
        ownValue = try copyConnection.statement(
            "SELECT \(map.losesValue(copy, countsGenerated: false)) FROM \(copy.sql) WHERE \(condition(copy.identity))")
        encodingsDiffer = try copyConnection.encoding != shipped.encoding
    }

    /// Returns whether exactly this row was shipped, and the app has not set any other column of it. The row has its rowid or
    /// NULL first, then all stored columns.
    func contains(_ row: borrowing Statement) throws -> Bool { try wasShipped(row) && !hasOwnValue(row) }

    private func wasShipped(_ row: borrowing Statement) throws -> Bool {
        defer { find.reset() }
        if let equals {
            while let rowID = try equals.next(row) {
                find.reset()
                try find.bind(rowID, at: 1)
                if try find.step(), try isEqual(row) { return true }
            }
            return false
        }
        for (index, column) in keyColumns.enumerated() { try find.bind(row, column, at: Int32(index + 1)) }
        // A key with NULLs may occur more than once.
        while try find.step() { if try isEqual(row) { return true } }
        return false
    }

    private func hasOwnValue(_ row: borrowing Statement) throws -> Bool {
        defer { ownValue.reset() }
        for (index, column) in identity.enumerated() { try ownValue.bind(row, column, at: Int32(index + 1)) }
        return try ownValue.step() && ownValue.int64(0) != 0
    }

    private func isEqual(_ row: borrowing Statement) throws -> Bool {
        for pair in map.pairs {
            let isSame = try row.stores(
                Int32(pair.old + 1), as: find, Int32(pair.new), encodingsDiffer: encodingsDiffer)
            if !isSame { return false }
        }
        return true
    }
}

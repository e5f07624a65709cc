import MoultBasics

/// The rows of a table as shipped by a release, which are looked up with the rows of an older or changed copy.
final class ShippedRows {
    private let find: Statement
    private let map: ColumnMap
    /// The columns of a copy's row that contain the identity of a shipped row.
    private let keyColumns: [Int32]
    private let encodingsDiffer: Bool

    /// Nil if no row of the copy can equal a shipped one, because the table is missing or has other columns.
    init?(_ copy: TableLayout, _ copyConnection: Connection, in shipped: Connection) throws {
        guard let layout = try TableLayout.of(SQLName(copy.name), in: shipped) else { return nil }
        map = try ColumnMap(copy, layout, renamed: [:])
        let copied = copy.columns
        guard map.dropped.allSatisfy({ copied[$0].isGenerated }), map.pairs.count == layout.columns.count else {
            return nil
        }
        let places = Dictionary(map.pairs.map { ($0.new, Int32($0.old + 1)) }) { first, _ in first }
        // VACUUM changes implicit rowids, so a declared key is preferred.
        let key = layout.rowIDColumn.map { [$0] } ?? layout.primaryKey
        let names: [String]
        if key.isEmpty {
            guard let name = layout.rowIDName, copy.rowIDName != nil else { return nil }
            (keyColumns, names) = ([0], [name])
        } else {
            keyColumns = key.compactMap { places[$0] }
            guard keyColumns.count == key.count else { return nil }
            names = key.map { quoteIdentifier(layout.columns[$0].name) }
        }
        let condition = names.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
        find = try shipped.statement(
            "SELECT \(layout.columnsSQL.joined(separator: ", ")) FROM \(layout.sql) WHERE \(condition)")
        encodingsDiffer = try copyConnection.encoding != shipped.encoding
    }

    /// Returns whether exactly this row was shipped. Its rowid or NULL comes first, then all stored columns.
    func contains(_ row: borrowing Statement) throws -> Bool {
        defer { find.reset() }
        for (index, column) in keyColumns.enumerated() { try find.bind(row, column, at: Int32(index + 1)) }
        // A key with NULLs may occur more than once.
        while try find.step() { if try isEqual(row) { return true } }
        return false
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

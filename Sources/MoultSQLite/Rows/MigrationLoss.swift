import MoultBasics

/// The values of a database that migrations removed. Where that is unknown, values count as changed.
package struct MigrationLoss: Equatable, Sendable {
    package struct Table: Equatable, Sendable {
        package let name: String
        /// Values that are different in the same row and column.
        package var valuesChanged = 0
        /// Values other than NULL in columns that are gone.
        package var valuesDropped = 0
        /// Rows whose rowid or primary key is gone.
        package var rowsDropped = 0
        /// The table is gone; all its rows are counted as dropped.
        package var isDropped = false

        package init(
            name: String, valuesChanged: Int = 0, valuesDropped: Int = 0, rowsDropped: Int = 0, isDropped: Bool = false
        ) {
            (self.name, self.valuesChanged, self.valuesDropped) = (name, valuesChanged, valuesDropped)
            (self.rowsDropped, self.isDropped) = (rowsDropped, isDropped)
        }

        /// Rows of which something is lost, as far as counts of values can tell.
        package var rows: Int { max(valuesChanged, valuesDropped) + rowsDropped }

        fileprivate var isLossless: Bool { valuesChanged + valuesDropped + rowsDropped == 0 }
    }

    /// The tables that have lost something, by name.
    package private(set) var tables: [Table] = []

    package var isEmpty: Bool { tables.isEmpty }

    package init(from before: Connection, to after: Connection, ignoring: Set<String> = []) throws {
        try before.reading {
            try after.reading { try compare(before, after, ignoring) }
        }
        tables.sort { $0.name < $1.name }
    }

    private mutating func compare(_ before: Connection, _ after: Connection, _ ignoring: Set<String>) throws {
        let (was, now) = (
            try TableKinds(of: before, ignoring: ignoring), try TableKinds(of: after, ignoring: ignoring)
        )
        var new = now.ordinary.filter { was.all[$0]?.type != "table" }
        for table in was.ordinary {
            guard let layout = try TableLayout.of(table, in: before) else { continue }
            let side = try RowSearch.Side(layout, before)
            if let other = try TableLayout.of(table, in: after) {
                note(try Self.loss(side, try RowSearch.Side(other, after)))
            } else if let renamed = try new.first(where: { try Self.holds(side, $0, after) }) {
                // Two tables that are gone cannot both be this one.
                new.removeAll { $0 == renamed }
            } else {
                note(Table(name: layout.name, rowsDropped: try Self.count(side), isDropped: true))
            }
        }
        for table in was.virtual {
            let name = was.all[table]?.name ?? table
            let count = try RowSearch.countUnmatched(virtual: table, was, before, in: after)
            let isThere = now.all[table]?.type == "virtual"
            note(
                isThere
                    ? Table(name: name, valuesChanged: count) : Table(name: name, rowsDropped: count, isDropped: true))
        }
    }

    private mutating func note(_ table: Table) { if !table.isLossless { tables.append(table) } }

    private static func count(_ side: RowSearch.Side) throws -> Int {
        Int(try side.connection.int("SELECT count(*) FROM \(side.layout.sql)"))
    }

    /// Whether a new table holds all rows of one that is gone.
    private static func holds(_ side: RowSearch.Side, _ table: String, _ after: Connection) throws -> Bool {
        guard let layout = try TableLayout.of(table, in: after) else { return false }
        let pairs = RowSearch.pairs(side.layout, layout)
        guard pairs.count == side.layout.columns.count, !pairs.isEmpty else { return false }
        return try RowSearch(side, in: try RowSearch.Side(layout, after), pairs: pairs).countUnmatched() == 0
    }

    private static func loss(_ side: RowSearch.Side, _ other: RowSearch.Side) throws -> Table {
        var loss = Table(name: side.layout.name)
        let named = RowSearch.pairs(side.layout, other.layout)
        let renamed = renamedColumns(side.layout, other.layout, named)
        let renamedPlaces = Set(renamed.map(\.row))
        let search = try RowSearch(side, in: other, pairs: named + renamed)
        try search.forEachUnmatched { row, there, isThere in
            guard isThere else {
                loss.rowsDropped += 1
                return
            }
            for pair in search.pairs where try !search.isSame(pair, row, there) {
                if !renamedPlaces.contains(pair.row) {
                    loss.valuesChanged += 1
                } else if !row.isNull(Int32(pair.row + 1)) {
                    loss.valuesDropped += 1
                }
            }
        }
        let kept = Set(search.pairs.map(\.row))
        for place in side.layout.columns.indices where !kept.contains(place) {
            let column = quoteIdentifier(side.layout.columns[place].name)
            loss.valuesDropped += Int(try side.connection.int("SELECT count(\(column)) FROM \(side.layout.sql)"))
        }
        return loss
    }

    /// Columns that may have been renamed: as many are gone as are new. Whether they were shows in their values.
    private static func renamedColumns(
        _ before: TableLayout, _ after: TableLayout, _ named: [(row: Int, other: Int)]
    ) -> [(row: Int, other: Int)] {
        let (rows, others) = (Set(named.map(\.row)), Set(named.map(\.other)))
        let gone = before.columns.indices.filter { !rows.contains($0) }
        let new = after.columns.indices.filter { !others.contains($0) }
        guard gone.count == new.count else { return [] }
        return zip(gone, new).map { (row: $0, other: $1) }
    }
}

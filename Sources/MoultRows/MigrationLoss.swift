import MoultBasics
package import MoultSQLite

/// The values that migrations removed or changed in a database. A value counts as changed unless it is found again.
package struct MigrationLoss: Equatable, Sendable {
    package struct Table: Equatable, Sendable {
        package let name: String
        /// The number of rows with a changed value in a remaining column, and no lost value in a removed one.
        package var rowsChanged = 0
        /// The number of rows with a value other than NULL in a removed column.
        package var rowsCut = 0
        /// The number of rows whose rowid or primary key no longer exists.
        package var rowsDropped = 0
        /// Whether the table was removed; all its rows are then counted as dropped.
        package var isDropped = false

        package var rows: Int { rowsChanged + rowsCut + rowsDropped }
    }

    package private(set) var tables: [Table] = []
    /// Indexes, triggers, views, virtual tables and generated columns that were removed or redefined.
    package private(set) var items: [SchemaShape.Item] = []

    package init(from before: Connection, to after: Connection, ignoring: Set<String> = []) throws {
        try before.reading {
            try after.reading { try compare(before, after, ignoring) }
        }
        tables.sort { $0.name < $1.name }
    }

    private mutating func compare(_ before: Connection, _ after: Connection, _ ignoring: Set<String>) throws {
        let (was, now) = (try Schema(of: before, ignoring: ignoring), try Schema(of: after, ignoring: ignoring))
        let derived = try SchemaShape(of: after).derived
        items = try SchemaShape(of: before).derived.filter { !derived.contains($0) }
        // A migration is valid UTF-8, so it cannot name, and cannot change, a table whose name is not.
        var new = now.ordinary.filter { was.all[$0]?.type != "table" }
        for table in was.ordinary {
            let layout = try was.listed(table)
            let side = RowComparison.Side(layout, before)
            if now.all[table]?.type == "table", let other = try now.table(table) {
                do { add(try Self.loss(side, .init(other, after))) } catch
                    where Connection.needsApp(error) || layout.hasReplacedName
                {
                    // Only the app can compare such rows, so a copy of all is kept.
                    add(Table(name: layout.name, rowsChanged: try before.rowCount(layout.name)))
                }
            } else if let renamed = try new.first(where: { try Self.holds(side, .init(now.listed($0), after)) }) {
                // One new table cannot replace two removed tables.
                new.removeAll { $0 == renamed }
            } else {
                add(Table(name: layout.name, rowsDropped: try Self.count(side), isDropped: true))
            }
        }
        for table in was.virtual {
            let name = was.name(table)
            let count = try was.countOwn(virtual: table, absentIn: now)
            let isThere = now.all[table]?.type == "virtual"
            add(
                isThere
                    ? Table(name: name, rowsChanged: count) : Table(name: name, rowsDropped: count, isDropped: true))
        }
    }

    private mutating func add(_ table: Table) { if table.rows > 0 { tables.append(table) } }

    private static func count(_ side: RowComparison.Side) throws -> Int {
        Int(try side.connection.int("\(side.layout.rows.countSQL)"))
    }

    /// Returns whether a new table contains all rows of a removed table.
    private static func holds(_ side: RowComparison.Side, _ other: RowComparison.Side) throws -> Bool {
        struct Missing: Error {}
        let pairs = RowComparison.pairs(side.layout, other.layout)
        guard pairs.count == side.layout.columns.count, !pairs.isEmpty else { return false }
        do {
            try RowComparison(side, other, pairs: pairs, isWanted: { _ in false }).run { difference, _, _ in
                if difference != .added { throw Missing() }
            }
            return true
        } catch is Missing { return false }
    }

    private static func loss(_ side: RowComparison.Side, _ other: RowComparison.Side) throws -> Table {
        var loss = Table(name: side.layout.name)
        let named = RowComparison.pairs(side.layout, other.layout)
        let renamed = renamedColumns(side.layout, other.layout, named)
        let renamedPlaces = Set(renamed.map(\.old))
        let comparison = try RowComparison(side, other, pairs: named + renamed, isWanted: { $0 != .added })
        let kept = Set(comparison.pairs.map(\.old))
        let gone = side.layout.columns.indices.filter { !kept.contains($0) }
        // The missing rows that have a value in a removed column: they count as dropped, and not again as cut.
        var goneAndCut = 0
        try comparison.run { difference, row, there in
            if difference == .added { return }
            var (isCut, isChanged) = (false, false)
            for place in side.places(gone) where !row.isNull(place) { isCut = true }
            if difference == .removed {
                loss.rowsDropped += 1
                if isCut { goneAndCut += 1 }
                return
            }
            if isCut { return }
            for pair in comparison.pairs where try !comparison.isSame(pair, row, there) {
                if !renamedPlaces.contains(pair.old) {
                    isChanged = true
                } else if !row.isNull(side.first + Int32(pair.old)) {
                    isCut = true
                }
            }
            if isCut { loss.rowsCut += 1 } else if isChanged { loss.rowsChanged += 1 }
        }
        if !gone.isEmpty {
            let values = gone.map { "\(quoteIdentifier(side.layout.columns[$0].name)) IS NOT NULL" }
            let sql = "\(side.layout.rows.countSQL) WHERE \(values.joined(separator: " OR "))"
            loss.rowsCut += Int(try side.connection.int(sql)) - goneAndCut
        }
        return loss
    }

    /// Pairs the removed columns with the added ones, if there are as many: they may have been renamed. A comparison of their
    /// values shows whether they were.
    private static func renamedColumns(
        _ before: TableLayout, _ after: TableLayout, _ named: [(old: Int, new: Int)]
    ) -> [(old: Int, new: Int)] {
        let (rows, others) = (Set(named.map(\.old)), Set(named.map(\.new)))
        let gone = before.columns.indices.filter { !rows.contains($0) }
        let new = after.columns.indices.filter { !others.contains($0) }
        guard gone.count == new.count else { return [] }
        return zip(gone, new).map { (old: $0, new: $1) }
    }
}

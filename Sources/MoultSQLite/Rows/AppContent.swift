package import MoultBasics
import MoultFiles

/// The content of a database that an app has added or changed, apart from rows selected by rules: everything that is not in the
/// original database. Rows that the app has deleted do not count.
package struct AppContent: Equatable, Sendable {
    package struct Item: Hashable, Comparable, Sendable {
        /// `index`, `trigger`, `view` or `table` (a virtual one).
        package let kind: String
        package let name: SQLName

        package static func < (one: Item, two: Item) -> Bool { (one.kind, one.name) < (two.kind, two.name) }
    }

    /// The number of rows added or changed, by table.
    package private(set) var rows: [SQLName: Int] = [:]
    /// Tables that the original database lacks, with their row counts.
    package private(set) var tables: [SQLName: Int] = [:]
    /// Indexes, triggers, views and virtual tables that are new or defined differently.
    package private(set) var items: [Item] = []
    /// Columns that the original table lacks, by table.
    package private(set) var columns: [SQLName: [SQLName]] = [:]

    /// Whether nothing but rows differs, and all of these rows were kept.
    package private(set) var isKeptAsRows = false

    package var isEmpty: Bool { rows.isEmpty && tables.isEmpty && items.isEmpty && columns.isEmpty }

    /// `selected` contains the conditions of the rules, by table. The rows that are neither selected nor in the original database are
    /// added to `kept`.
    package init(
        of live: Connection, against pristine: Connection, selected: [SQLName: [String?]] = [:],
        ignoring: Set<String> = [], keeping kept: KeptRows? = nil
    ) throws {
        for (table, conditions) in selected { try Selection.check(conditions, of: table.text) }
        try live.reading {
            try pristine.reading {
                try live.with(.doubleQuotedStringsInDML, false) {
                    try live.namingAppExtensions("compare \(live.path) with what it was made from") {
                        try compare(live, pristine, selected, ignoring, kept)
                    }
                }
            }
        }
    }

    /// Returns whether a database of which nothing but selected rows differed from the original, as its copy shows, is still so: each row
    /// that differs from the copy is selected. Reads only the pages that differ. False means that the whole content must be compared.
    package static func isStillEmpty(
        _ live: Connection, since copy: Connection, selected: [SQLName: [String?]], ignoring: Set<String>
    ) throws -> Bool {
        try live.reading {
            try copy.reading {
                try live.with(.doubleQuotedStringsInDML, false) {
                    let kinds = try TableKinds(of: live, ignoring: ignoring)
                    guard try schema(of: live, []) == schema(of: copy, []), kinds.virtual.isEmpty,
                        kinds.undecodable.isEmpty
                    else { return false }
                    let (roots, earlierRoots) = (try RootPages(of: live), try RootPages(of: copy))
                    return try kinds.ordinary.allSatisfy { table in
                        let conditions = selected[table] ?? []
                        if conditions.contains(nil) { return true }
                        let layout = try TableLayout.listed(table, in: live)
                        let now = try RowSearch.Side(layout, live, roots)
                        let isSelected = try SelectedRows(conditions, now)
                        var isEmpty = true
                        let search = try RowSearch(
                            now, in: RowSearch.Side(layout, copy, earlierRoots), pairs: RowSearch.pairs(layout, layout))
                        try search.forEachUnmatched { row, _, _ in if isEmpty { isEmpty = try isSelected.contains(row) }
                        }
                        return isEmpty
                    }
                }
            }
        }
    }

    /// Returns the number of rows in each table and virtual table, except tables that are too damaged to be counted.
    package static func rowCounts(of live: Connection, ignoring: Set<String>) throws -> [SQLName: Int] {
        let (kinds, empty) = (try TableKinds(of: live, ignoring: ignoring), try Connection.inMemory())
        defer { withExtendedLifetime(empty) {} }
        var counts = try live.rowCounts(of: kinds.undecodable)
        for table in kinds.ordinary + kinds.virtual {
            let name = kinds.all[table]?.name ?? table.text
            do {
                counts[SQLName(name), default: 0] +=
                    kinds.virtual.contains(table)
                    ? try RowSearch.countUnmatched(virtual: table, kinds, live, in: empty) : try live.rowCount(name)
            } catch let error as MoultError where error.code == .databaseCorrupt { continue }
        }
        return counts
    }

    private mutating func compare(
        _ live: Connection, _ pristine: Connection, _ selected: [SQLName: [String?]], _ ignoring: Set<String>,
        _ kept: KeptRows?
    ) throws {
        // Content that cannot be kept as rows.
        var hasMore = kept == nil
        let (now, was) = (
            try TableKinds(of: live, ignoring: ignoring), try TableKinds(of: pristine, ignoring: ignoring)
        )
        let (roots, earlierRoots) = (try RootPages(of: live), try RootPages(of: pristine))
        for table in now.ordinary {
            let layout = try TableLayout.listed(table, in: live)
            guard let before = try TableLayout.of(table, in: pristine) else {
                tables[SQLName(layout.name)] = try live.rowCount(layout.name)
                continue
            }
            do {
                let isKept = try compare(
                    RowSearch.Side(layout, live, roots), RowSearch.Side(before, pristine, earlierRoots),
                    selected[table], kept)
                if !isKept { hasMore = true }
            } catch  where Connection.needsApp(error) || layout.hasReplacedName {
                // Only the app can compare such rows, or no statement can name a column. All of them count as changed, and are kept.
                let count = try live.rowCount(layout.name)
                if count > 0 { rows[SQLName(layout.name)] = count }
                hasMore = true
            }
        }
        for table in now.virtual {
            let name = now.all[table].map { SQLName($0.name) } ?? table
            let count = try RowSearch.countUnmatched(virtual: table, now, live, in: pristine)
            if was.all[table]?.type != "virtual" {
                tables[name] = count
            } else if count > 0 {
                rows[name] = count
                hasMore = true
            }
        }
        // Such a table cannot be compared, so it counts as the app's own, even if a release has it.
        tables.merge(try live.rowCounts(of: now.undecodable)) { $0 + $1 }
        let shipped = try Self.definitions(of: pristine, was)
        // A new virtual table with its own content is already in `tables`.
        items = Set(try Self.definitions(of: live, now).subtracting(shipped).map(\.key))
            .filter { $0.kind != "table" || tables[$0.name] == nil }.sorted()
        let isSame = try hasMore || Self.schema(of: live, ignoring) == Self.schema(of: pristine, ignoring)
        isKeptAsRows = !hasMore && isSame && !rows.isEmpty && tables.isEmpty && items.isEmpty && columns.isEmpty
    }

    /// Returns whether all rows that differ were kept.
    private mutating func compare(
        _ live: RowSearch.Side, _ pristine: RowSearch.Side, _ conditions: [String?]?, _ kept: KeptRows?
    ) throws -> Bool {
        let layout = live.layout
        let generated = Set(pristine.layout.generated.map { SQLName($0) })
        let added = (layout.columns.map(\.name) + layout.generated).filter {
            pristine.layout.place(of: $0) == nil && !generated.contains(SQLName($0))
        }
        if !added.isEmpty { columns[SQLName(layout.name)] = added.map { SQLName($0) } }
        // A condition without text selects every row.
        let conditions = conditions ?? []
        if conditions.contains(nil) { return true }
        let search = try RowSearch(live, in: pristine, pairs: RowSearch.pairs(layout, pristine.layout))
        let isSelected = try SelectedRows(conditions, live)
        // The app has set a column that the original table lacks.
        let map = try ColumnMap(layout, pristine.layout, renamed: [:])
        let own = map.dropped.isEmpty || layout.identity.isEmpty ? [] : [try map.losesValue(layout)]
        let hasOwnValue = try SelectedRows(own, live)
        let moved = try kept == nil ? [] : Self.rowsThatMayHaveMoved(pristine, live)
        let kept = KeptRows.canKeep(layout) ? kept : nil
        var (count, isKept) = (0, true)
        try search.forEachUnmatched { row, _, _ in
            if try isSelected.contains(row) || hasOwnValue.contains(row) { return }
            count += 1
            if let kept { try kept.add(row, of: layout) } else { isKept = false }
            // Among the kept rows alone, a shipped row would pass for one of the app.
            if !moved.isEmpty, try moved.contains(KeyDigest(of: row, layout.values)) { isKept = false }
        }
        if !own.isEmpty {
            count += try Self.count(live, own)
            if !conditions.isEmpty { count -= try Self.count(live, own, and: Selection.anyOf(conditions)) }
        }
        if count > 0 { rows[SQLName(layout.name)] = count }
        return isKept
    }

    private static func count(_ side: RowSearch.Side, _ conditions: [String], and other: String? = nil) throws -> Int {
        let rows = side.layout.rows
        return Int(try side.connection.int(rows.countSQL + rows.whereSQL(conditions, and: other)))
    }

    /// Returns the digests of the original rows that are not at their place any more: without a declared rowid, VACUUM may have
    /// moved them.
    private static func rowsThatMayHaveMoved(
        _ pristine: RowSearch.Side, _ live: RowSearch.Side
    ) throws -> Set<KeyDigest> {
        guard live.layout.rowIDColumn == nil, !live.layout.isWithoutRowID else { return [] }
        var found: Set<KeyDigest> = []
        let search = try RowSearch(pristine, in: live, pairs: RowSearch.pairs(pristine.layout, live.layout))
        try search.forEachUnmatched { row, _, _ in
            found.insert(try KeyDigest(of: row, pristine.layout.values))
        }
        return found
    }

    /// Returns the pragmas that an app can set, and all definitions but those of ignored tables.
    private static func schema(of connection: Connection, _ ignoring: Set<String>) throws -> [[UInt8]] {
        let ignored = Set(ignoring.map { SQLName($0) })
        let pragmas = try ["user_version", "application_id"].map { "\(try connection.int("PRAGMA main.\($0)"))" }
        let definitions = try connection.query(
            "SELECT tbl_name, type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
        ).filter { !SQLName($0[0].textOrEmpty).isInternal && !ignored.contains(SQLName($0[0].textOrEmpty)) }
        return (pragmas + definitions.flatMap { $0.map(\.textOrEmpty) }).map { Array($0.utf8) }
    }

    private struct Definition: Hashable {
        let key: Item
        let sql: [UInt8]
    }

    /// Returns the definitions of indexes, triggers, views and virtual tables. The automatic index of
    /// a constraint is left out: it has no SQL, because it is part of its table. Items of ignored tables are included.
    private static func definitions(of connection: Connection, _ kinds: TableKinds) throws -> Set<Definition> {
        let sql = """
            SELECT type, name, tbl_name, sql FROM main.sqlite_schema
            WHERE (type IN ('index', 'trigger', 'view') OR type = 'table' AND rootpage = 0) AND sql IS NOT NULL
            """
        return Set(
            try connection.query(sql).compactMap { row in
                guard kinds.all[SQLName(row[2].textOrEmpty)]?.type != "shadow" else { return nil }
                return Definition(
                    key: Item(kind: row[0].textOrEmpty, name: SQLName(row[1].textOrEmpty)),
                    sql: Array(row[3].textOrEmpty.utf8))
            })
    }
}

/// Determines whether conditions select a row read by `RowSearch`.
private final class SelectedRows {
    private let statement: Statement
    private let keyColumns: [Int32]

    init(_ conditions: [String?], _ side: RowSearch.Side) throws {
        let layout = side.layout
        // A table WITHOUT ROWID is queried by its primary key. The stored columns of a row begin at 1.
        keyColumns = layout.isWithoutRowID ? layout.primaryKey.map { Int32($0 + 1) } : [0]
        let identity = layout.identity.isEmpty ? ["NULL"] : layout.identity
        let key = identity.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
        statement = try side.connection.statement(
            "SELECT 1 FROM \(layout.rows.sql)\(layout.rows.whereSQL(conditions, and: key))")
    }

    func contains(_ row: borrowing Statement) throws -> Bool {
        defer { statement.reset() }
        for (index, column) in keyColumns.enumerated() { try statement.bind(row, column, at: Int32(index + 1)) }
        return try statement.step()
    }
}

extension Connection {
    /// Returns whether this database has all rows, tables and definitions of another one, whose file nothing else uses. Returns false
    /// if the two cannot be compared.
    package func hasAll(of path: String) throws -> Bool {
        do {
            let other = try Connection(path: path, access: .immutable)
            let isEmpty = try AppContent(of: other, against: self).isEmpty
            try other.close()
            return isEmpty
        } catch is MoultError { return false }
    }
}

extension NonInvasiveReader {
    /// Returns whether the database at a path has all of another one. Returns false if the path has no database.
    package static func has(_ path: String, allOf other: String) throws -> Bool {
        guard try Files.factsThroughLinks(path)?.kind == .file else { return false }
        do { return try into(path) { try $0.hasAll(of: other) } } catch is MoultError { return false }
    }
}

package import MoultBasics
import MoultFiles
package import MoultSQLite

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
                    let (now, was) = (try Schema(of: live, ignoring: ignoring), try Schema(of: copy))
                    guard try schema(of: live, []) == schema(of: copy, []), now.virtual.isEmpty,
                        now.undecodable.isEmpty
                    else { return false }
                    do {
                        for table in now.ordinary {
                            let conditions = selected[table] ?? []
                            if conditions.contains(nil) { continue }
                            let side = RowComparison.Side(try now.listed(table), live)
                            let isSelected = try SelectedRows(conditions, side)
                            let comparison = try RowComparison(
                                .init(was.listed(table), copy), side, isWanted: { $0 != .removed })
                            try comparison.run { difference, _, row in
                                if try difference != .removed && !isSelected.contains(row) { throw Found() }
                            }
                        }
                        return true
                    } catch is Found { return false }
                }
            }
        }
    }

    private struct Found: Error {}

    /// Returns the number of rows in each table and virtual table, except tables that are too damaged to be counted.
    package static func rowCounts(of live: Connection, ignoring: Set<String>) throws -> [SQLName: Int] {
        let schema = try Schema(of: live, ignoring: ignoring)
        var counts = try schema.undecodableRowCounts()
        for table in schema.ordinary + schema.virtual {
            let name = schema.name(table)
            do {
                counts[SQLName(name), default: 0] +=
                    try schema.virtual.contains(table)
                    ? schema.countOwn(virtual: table, absentIn: nil) : live.rowCount(name)
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
        let (now, was) = (try Schema(of: live, ignoring: ignoring), try Schema(of: pristine, ignoring: ignoring))
        for table in now.ordinary {
            let layout = try now.listed(table)
            guard was.all[table]?.type == "table", let before = try was.table(table) else {
                tables[SQLName(layout.name)] = try live.rowCount(layout.name)
                continue
            }
            do {
                if try !compare(.init(before, pristine), .init(layout, live), selected[table], kept) { hasMore = true }
            } catch  where Connection.needsApp(error) || layout.hasReplacedName {
                // Only the app can compare such rows, or no statement can name a column. All of them count as changed, and are kept.
                let count = try live.rowCount(layout.name)
                if count > 0 { rows[SQLName(layout.name)] = count }
                hasMore = true
            }
        }
        for table in now.virtual {
            let name = SQLName(now.name(table))
            let count = try now.countOwn(virtual: table, absentIn: was)
            if was.all[table]?.type != "virtual" {
                tables[name] = count
            } else if count > 0 {
                rows[name] = count
                hasMore = true
            }
        }
        // Such a table cannot be compared, so it counts as the app's own, even if a release has it.
        tables.merge(try now.undecodableRowCounts()) { $0 + $1 }
        let shipped = try Self.definitions(of: pristine, was)
        // A new virtual table with its own content is already in `tables`.
        items = Set(try Self.definitions(of: live, now).subtracting(shipped).map(\.key))
            .filter { $0.kind != "table" || tables[$0.name] == nil }.sorted()
        let isSame = try hasMore || Self.schema(of: live, ignoring) == Self.schema(of: pristine, ignoring)
        isKeptAsRows = !hasMore && isSame && !rows.isEmpty && tables.isEmpty && items.isEmpty && columns.isEmpty
    }

    /// Returns whether all rows that differ were kept.
    private mutating func compare(
        _ pristine: RowComparison.Side, _ live: RowComparison.Side, _ conditions: [String?]?, _ kept: KeptRows?
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
        let isSelected = try SelectedRows(conditions, live)
        // The app has set a column that the original table lacks.
        let map = try ColumnMap(layout, pristine.layout, renamed: [:])
        let own = map.dropped.isEmpty || layout.identity.isEmpty ? [] : [try map.losesValue(layout)]
        let hasOwnValue = try SelectedRows(own, live)
        let kept = KeptRows.canKeep(layout) ? kept : nil
        var (count, isKept) = (0, true)
        try RowComparison(pristine, live, isWanted: { $0 != .removed }).run { difference, _, row in
            if try difference == .removed || isSelected.contains(row) || hasOwnValue.contains(row) { return }
            count += 1
            if let kept { try kept.add(row, of: layout) } else { isKept = false }
        }
        if !own.isEmpty {
            count += try Self.count(live, own)
            if !conditions.isEmpty { count -= try Self.count(live, own, and: Selection.anyOf(conditions)) }
        }
        if count > 0 { rows[SQLName(layout.name)] = count }
        return isKept
    }

    private static func count(
        _ side: RowComparison.Side, _ conditions: [String], and other: String? = nil
    ) throws -> Int {
        let rows = side.layout.rows
        return Int(try side.connection.int(rows.countSQL + rows.whereSQL(conditions, and: other)))
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
    private static func definitions(of connection: Connection, _ schema: Schema) throws -> Set<Definition> {
        let sql = """
            SELECT type, name, tbl_name, sql FROM main.sqlite_schema
            WHERE (type IN ('index', 'trigger', 'view') OR type = 'table' AND rootpage = 0) AND sql IS NOT NULL
            """
        return Set(
            try connection.query(sql).compactMap { row in
                guard schema.all[SQLName(row[2].textOrEmpty)]?.type != "shadow" else { return nil }
                return Definition(
                    key: Item(kind: row[0].textOrEmpty, name: SQLName(row[1].textOrEmpty)),
                    sql: Array(row[3].textOrEmpty.utf8))
            })
    }
}

/// Determines whether conditions select a row of a comparison.
private final class SelectedRows {
    private let statement: Statement
    private let keyColumns: [Int32]

    init(_ conditions: [String?], _ side: RowComparison.Side) throws {
        let layout = side.layout
        keyColumns = side.identity
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

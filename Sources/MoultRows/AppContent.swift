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

    package private(set) var rows: [SQLName: Int] = [:]
    /// Tables that the original database lacks, with their row counts.
    package private(set) var tables: [SQLName: Int] = [:]
    /// Indexes, triggers, views and virtual tables that are new or defined differently.
    package private(set) var items: [Item] = []
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
        try live.readingStrictly {
            try pristine.reading {
                try live.namingAppExtensions("compare \(live.path) with what it was made from") {
                    try compare(live, pristine, selected, ignoring, kept)
                }
            }
        }
    }

    /// Returns whether a database of which nothing but selected rows differed from the original, as its copy shows, is still so: each row
    /// that differs from the copy is selected. Reads only the pages that differ. False means that the whole content must be compared.
    package static func isStillEmpty(
        _ live: Connection, since copy: Connection, selected: [SQLName: [String?]], ignoring: Set<String>
    ) throws -> Bool {
        struct Found: Error {}
        return try live.readingStrictly {
            try copy.reading {
                let (now, was) = (try Schema(of: live, ignoring: ignoring), try Schema(of: copy))
                guard try schema(of: live, []) == schema(of: copy, []), now.virtual.isEmpty, now.undecodable.isEmpty
                else {
                    return false
                }
                do {
                    for table in now.ordinary {
                        let conditions = selected[table] ?? []
                        if conditions.contains(nil) { continue }
                        let side = RowComparison.Side(try now.listed(table), live)
                        let isSelected = try Self.lookup(conditions, side)
                        let before = RowComparison.Side(try was.listed(table), copy)
                        try RowComparison(before, side, isWanted: { $0 != .removed }).run { difference, _, row in
                            if try difference != .removed && !isSelected.contains(row) { throw Found() }
                        }
                    }
                    return true
                } catch is Found { return false }
            }
        }
    }

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
        items = try Self.definitions(of: live, now).filter { item, sql in
            shipped[item] != sql && (item.kind != "table" || tables[item.name] == nil)
        }.keys.sorted()
        let isSame = try hasMore || Self.schema(of: live, ignoring) == Self.schema(of: pristine, ignoring)
        isKeptAsRows = !hasMore && isSame && !rows.isEmpty && tables.isEmpty && items.isEmpty && columns.isEmpty
    }

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
        let isSelected = try Self.lookup(conditions, live)
        // The app has set a column that the original table lacks.
        let map = try ColumnMap(layout, pristine.layout, renamed: [:])
        let own = map.dropped.isEmpty || layout.identity.isEmpty ? [] : [try map.losesValue(layout)]
        let hasOwnValue = try Self.lookup(own, live)
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

    /// Returns a statement that finds a row of a comparison if one of the conditions selects it.
    private static func lookup(_ conditions: [String?], _ side: RowComparison.Side) throws -> RowStatement {
        let layout = side.layout
        let key = RowStatement.condition(layout.identity.isEmpty ? ["NULL"] : layout.identity)
        let sql = "SELECT 1 FROM \(layout.rows.sql)\(layout.rows.whereSQL(conditions, and: key))"
        return RowStatement(try side.connection.statement(sql), side.identity)
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

    /// Returns the definitions of indexes, triggers, views and virtual tables. The automatic index of
    /// a constraint is left out: it has no SQL, because it is part of its table. Items of ignored tables are included.
    private static func definitions(of connection: Connection, _ schema: Schema) throws -> [Item: [UInt8]] {
        let sql = """
            SELECT type, name, tbl_name, sql FROM main.sqlite_schema
            WHERE (type IN ('index', 'trigger', 'view') OR type = 'table' AND rootpage = 0) AND sql IS NOT NULL
            """
        let rows = try connection.query(sql).map { $0.map(\.textOrEmpty) }
        let own = rows.filter { schema.all[SQLName($0[2])]?.type != "shadow" }
        return Dictionary(own.map { (Item(kind: $0[0], name: SQLName($0[1])), Array($0[3].utf8)) }, uniquingKeysWith: +)
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

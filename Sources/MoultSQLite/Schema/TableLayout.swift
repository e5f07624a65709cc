import CSQLite
package import MoultBasics

/// The columns and keys of a table, as needed to move and compare rows.
package struct TableLayout {
    package struct Column {
        package let name: String
        package let defaultValue: String?
        /// Whether the value is computed; such a column is listed only so that its values are carried over.
        package var isGenerated = false
    }

    package let name: String
    package let isVirtual: Bool
    package let isWithoutRowID: Bool
    /// Why the rows cannot be read, for example because the module of a virtual table is not available; nil if they can be read.
    package private(set) var obstacle: String?
    /// The root page of the table's B-tree, if that was asked for; 0 for a virtual table.
    package let rootPage: Int64?
    /// The stored columns, without generated ones, except those that `adding` appends.
    package private(set) var columns: [Column]
    package let generated: [String]
    /// The positions in `columns` of the declared primary key.
    package let primaryKey: [Int]
    /// The position in `columns` of the INTEGER PRIMARY KEY.
    package let rowIDColumn: Int?
    /// The SQL expression for the rowid; nil if the table has no rowid, or if other columns use all of its names.
    package let rowIDName: String?
    /// Unique indexes that cover all rows.
    private let uniqueIndexes: [String]
    /// The table in statements that read the rows themselves, without any index.
    package let rows: TableRows
    package let record: [String]
    private let places: [SQLName: Int]

    /// Returns the table whose name matches under SQLite's rules; nil if no ordinary table does.
    package static func of(_ table: SQLName, in connection: Connection) throws -> TableLayout? {
        for listed in try connection.listedTables(named: table.text) {
            guard let declared = listed.name, SQLName(declared) == table else { continue }
            if try listed.type == "table" || listed.type == "shadow" && !ModuleTables.isPart(declared, in: connection) {
                return try TableLayout(declared, listed, connection)
            }
        }
        return nil
    }

    package init(_ name: String, _ listed: ListedTable, rootPage: Int64? = nil, _ connection: Connection) throws {
        (self.name, self.rootPage) = (name, rootPage)
        (isVirtual, isWithoutRowID) = (listed.type == "virtual", listed.isWithoutRowID)
        var (rows, indexes): ([[Value]], [[Value]]) = ([], [])
        do {
            rows = try connection.query("PRAGMA main.table_xinfo(\(quoteIdentifier(name)))")
            indexes = try isVirtual ? [] : connection.query("PRAGMA main.index_list(\(quoteIdentifier(name)))")
        } catch {
            guard isVirtual, let sqlite = error.sqlite, case .error = sqlite.resultCode else { throw error }
            obstacle = sqlite.message
        }
        let stored = rows.filter { $0[6] == .integer(0) }
        let columns = stored.map { row in
            Column(name: row[1].textOrEmpty, defaultValue: row[4] == .null ? nil : row[4].textOrEmpty)
        }
        // A virtual generated column, 2, has no place in a record.
        record = rows.filter { $0[6] != .integer(2) }.map { "\($0[6]) \($0[2].textOrEmpty.uppercased()) \($0[4])" }
        generated = rows.filter { $0[6] != .integer(0) }.map(\.[1].textOrEmpty)
        let key = columns.indices.filter { stored[$0][5].integerOrZero > 0 }
            .sorted { stored[$0][5].integerOrZero < stored[$1][5].integerOrZero }
        self.rows = TableRows(name, primaryKey: isWithoutRowID ? TableRows.primaryKey(indexes) : nil)
        // A primary key that is the rowid itself has no index.
        let isRowIDKey = !isVirtual && !isWithoutRowID && key.count == 1 && !indexes.contains { $0[3] == .text("pk") }
        var alias = freeRowIDName(among: rows.map(\.[1].textOrEmpty))
        if isVirtual, let name = alias, try obstacle != nil || !Self.canRead(name, of: self.name, connection) {
            alias = nil
        }
        (self.columns, primaryKey) = (columns, key)
        rowIDColumn = isRowIDKey ? key.first : nil
        rowIDName = isWithoutRowID ? nil : isRowIDKey ? key.first.map { quoteIdentifier(columns[$0].name) } : alias
        places = Dictionary(columns.enumerated().map { (SQLName($1.name), $0) }) { first, _ in first }
        uniqueIndexes = indexes.filter { $0[2] == .integer(1) && $0[4] == .integer(0) }.map { $0[1].textOrEmpty }
        if hasReplacedName { obstacle = "the name of a column is not valid UTF-8" }
    }

    /// Returns whether a virtual table has this column. It may have no rowid, and only a statement that uses it can tell.
    private static func canRead(_ column: String, of table: String, _ connection: Connection) throws -> Bool {
        do {
            return try connection.withStatement("SELECT \(column) FROM main.\(quoteIdentifier(table))") {
                $0.columnCount == 1
            }
        } catch {
            guard let sqlite = error.sqlite, case .error = sqlite.resultCode else { throw error }
            return false
        }
    }

    /// Returns, for each unique key that covers all rows, except the rowid, the positions in `columns` of the key's columns; empty
    /// if the key has an expression or a generated column.
    package func uniqueKeys(in connection: Connection) throws -> [[Int]] {
        try uniqueIndexes.map { index in
            let key = try connection.query("PRAGMA main.index_info(\(quoteIdentifier(index)))")
            let found = key.compactMap { place(of: $0[2].textOrEmpty) }
            return found.count == key.count ? found : []
        }
    }

    package var hasUniqueKey: Bool { !uniqueIndexes.isEmpty }

    package var sql: String { "main.\(quoteIdentifier(name))" }
    package var columnNames: [String] { columns.map(\.name) }
    package var columnsSQL: [String] { columns.map { quoteIdentifier($0.name) } }

    /// The expressions that identify a row: the rowid, or the primary key of a table WITHOUT ROWID. Empty if no name for the
    /// rowid is left.
    package var identity: [String] {
        isWithoutRowID ? primaryKey.map { quoteIdentifier(columns[$0].name) } : rowIDName.map { [$0] } ?? []
    }

    /// Returns this table with additional `columns` at the end: the generated columns that another table stores. `renamed` has
    /// the new names of columns.
    package func adding(columnsStoredIn other: TableLayout, renamed: [String: String]) -> TableLayout {
        let names = Dictionary(renamed.map { (SQLName($0), $1) }) { first, _ in first }
        var layout = self
        layout.columns += generated.filter { other.place(of: names[SQLName($0)] ?? $0) != nil }.map {
            Column(name: $0, defaultValue: nil, isGenerated: true)
        }
        return layout
    }

    /// Returns the position of the column whose name matches under SQLite's rules; nil if no column matches.
    package func place(of column: String) -> Int? {
        let name = SQLName(column)
        return places[name] ?? columns.indices.dropFirst(places.count).first { SQLName(columns[$0].name) == name }
    }

    /// Whether the name of a column is probably not valid UTF-8.
    package var hasReplacedName: Bool { columns.contains { $0.name.unicodeScalars.contains("\u{FFFD}") } }

    /// Returns whether new rows never get the id of a deleted row.
    package func isAutoincrement(in connection: Connection) throws -> Bool {
        guard let rowIDColumn else { return false }
        var isAutoincrement: Int32 = 0
        try connection.check(
            sqlite3_table_column_metadata(
                connection.handle, "main", name, columns[rowIDColumn].name, nil, nil, nil, nil, &isAutoincrement),
            doing: "read the schema of \(connection.path)")
        return isAutoincrement != 0
    }
}

extension Value {
    package var textOrEmpty: String { if case .text(let text) = self { text } else { "" } }
    package var integerOrZero: Int64 { if case .integer(let number) = self { number } else { 0 } }
}

/// A table in SQL that reads the rows themselves: an index may lack entries, or be ordered by a collation that only the app has,
/// and then it would hide rows.
package struct TableRows {
    package let sql: String
    package let countSQL: String
    package let isPrimaryKey: Bool

    /// `primaryKey` is the index of a table WITHOUT ROWID that contains its rows. For such a table, `NOT INDEXED` excludes no
    /// index, and SQLite counts with `count(*)` in any index.
    package init(_ table: String, primaryKey: String?) {
        let name = "main.\(quoteIdentifier(table))"
        sql = name + (primaryKey.map { " INDEXED BY \(quoteIdentifier($0))" } ?? " NOT INDEXED")
        isPrimaryKey = primaryKey != nil
        countSQL = "SELECT \(primaryKey == nil ? "count(*)" : "count(1)") FROM \(sql)"
    }

    package init(_ table: String, in connection: Connection) throws {
        let key = Self.primaryKey(try connection.query("PRAGMA main.index_list(\(quoteIdentifier(table)))"))
        // Only few tables have such an index, and listing a table compares the names of all tables.
        let isWithoutRowID =
            try key != nil
            && connection.query("PRAGMA main.table_list(\(quoteIdentifier(table)))").contains {
                $0[0] == .text("main") && $0[4] == .integer(1)
            }
        self.init(table, primaryKey: isWithoutRowID ? key : nil)
    }

    /// Returns the index of the primary key among the rows of `PRAGMA index_list`.
    package static func primaryKey(_ indexes: [[Value]]) -> String? {
        indexes.first { $0[3] == .text("pk") }?[1].textOrEmpty
    }
}

import CSQLite
import MoultBasics

/// The columns and keys of an ordinary table, as needed to move and compare rows.
struct TableLayout {
    struct Column {
        let name: String
        let type: String
        /// The SQL text of the default.
        let defaultValue: String?
        fileprivate let keyPlace: Int64
        /// Whether the value is computed; such a column is listed only so that its values are carried over.
        var isGenerated = false
    }

    let name: String
    let isWithoutRowID: Bool
    /// The stored columns, without generated ones, except those that `adding` appends.
    private(set) var columns: [Column]
    /// The names of generated columns.
    let generated: [String]
    /// The positions in `columns` of the declared primary key.
    let primaryKey: [Int]
    /// The position in `columns` of the INTEGER PRIMARY KEY.
    let rowIDColumn: Int?
    /// The SQL expression for the rowid; nil if the table has no rowid, or if other columns use all of its names.
    let rowIDName: String?
    /// For each unique key that covers all rows, except the rowid, the positions in `columns` of the key's columns; empty if
    /// the key has an expression or a generated column.
    let uniqueKeys: [[Int]]
    /// The table in statements that read the rows themselves, without any index.
    let rows: TableRows

    /// Returns the table whose name matches under SQLite's rules; nil if none of this type does.
    static func of(_ table: SQLName, in connection: Connection, type: String = "table") throws -> TableLayout? {
        for row in try connection.query("PRAGMA main.table_list(\(quoteIdentifier(table.text)))") {
            guard row[0] == .text("main"), case .text(let declared) = row[1], SQLName(declared) == table else {
                continue
            }
            let isShadow = try row[2] == .text("shadow") && ModuleTables.isPart(declared, in: connection)
            guard row[2] == .text(type) || row[2] == .text("shadow") && type == (isShadow ? "shadow" : "table") else {
                continue
            }
            return try TableLayout(declared, isWithoutRowID: row[4] == .integer(1), connection)
        }
        return nil
    }

    /// Returns a table that SQLite has listed. A table that cannot be found again must not be taken for one without rows.
    static func listed(_ table: SQLName, in connection: Connection, type: String = "table") throws -> TableLayout {
        if let layout = try of(table, in: connection, type: type) { return layout }
        throw MoultError(
            .databaseRequest, what: "cannot read the table \"\(table)\" in \(connection.path)",
            why: "SQLite lists the table, but does not find it by its name")
    }

    private init(_ name: String, isWithoutRowID: Bool, _ connection: Connection) throws {
        self.name = name
        self.isWithoutRowID = isWithoutRowID
        let rows = try connection.query("PRAGMA main.table_xinfo(\(quoteIdentifier(name)))")
        let columns = rows.filter { $0[6] == .integer(0) }.map { row in
            Column(
                name: row[1].textOrEmpty, type: row[2].textOrEmpty,
                defaultValue: row[4] == .null ? nil : row[4].textOrEmpty, keyPlace: row[5].integerOrZero)
        }
        generated = rows.filter { $0[6] != .integer(0) }.map(\.[1].textOrEmpty)
        let key = columns.indices.filter { columns[$0].keyPlace > 0 }
            .sorted { columns[$0].keyPlace < columns[$1].keyPlace }
        let indexes = try connection.query("PRAGMA main.index_list(\(quoteIdentifier(name)))")
        self.rows = TableRows(name, primaryKey: isWithoutRowID ? TableRows.primaryKey(indexes) : nil)
        // A primary key that is the rowid itself has no index.
        let isRowIDKey = !isWithoutRowID && key.count == 1 && !indexes.contains { $0[3] == .text("pk") }
        let taken = Set(rows.map { SQLName($0[1].textOrEmpty) })
        let alias = ["rowid", "_rowid_", "oid"].first { !taken.contains(SQLName($0)) }
        (self.columns, primaryKey) = (columns, key)
        rowIDColumn = isRowIDKey ? key.first : nil
        rowIDName =
            isWithoutRowID ? nil : isRowIDKey ? key.first.map { quoteIdentifier(columns[$0].name) } : alias
        let places = Dictionary(columns.enumerated().map { (SQLName($1.name), $0) }) { first, _ in first }
        uniqueKeys = try indexes.filter { $0[2] == .integer(1) && $0[4] == .integer(0) }.map { index in
            let key = try connection.query("PRAGMA main.index_info(\(quoteIdentifier(index[1].textOrEmpty)))")
            let found = key.compactMap { places[SQLName($0[2].textOrEmpty)] }
            return found.count == key.count ? found : []
        }
    }

    var hasUniqueKey: Bool { !uniqueKeys.isEmpty }

    /// The table's name in SQL.
    var sql: String { "main.\(quoteIdentifier(name))" }
    /// The columns of a row that `RowSearch` reads: the rowid comes first.
    var values: Range<Int32> { 1..<Int32(columns.count + 1) }
    /// The names of the stored columns in SQL.
    var columnsSQL: [String] { columns.map { quoteIdentifier($0.name) } }

    /// The expressions that identify a row: the rowid, or the primary key of a table WITHOUT ROWID. Empty if no name for the
    /// rowid is left.
    var identity: [String] {
        isWithoutRowID ? primaryKey.map { quoteIdentifier(columns[$0].name) } : rowIDName.map { [$0] } ?? []
    }

    /// Returns this table with additional `columns` at the end: the generated columns that another table stores. `renamed` has
    /// the new names of columns.
    func adding(columnsStoredIn other: TableLayout, renamed: [String: String]) -> TableLayout {
        let names = Dictionary(renamed.map { (SQLName($0), $1) }) { first, _ in first }
        var layout = self
        layout.columns += generated.filter { other.place(of: names[SQLName($0)] ?? $0) != nil }.map {
            Column(name: $0, type: "", defaultValue: nil, keyPlace: 0, isGenerated: true)
        }
        return layout
    }

    /// Returns the position of the column whose name matches under SQLite's rules; nil if no column matches.
    func place(of column: String) -> Int? {
        let name = SQLName(column)
        return columns.firstIndex { SQLName($0.name) == name }
    }

    /// Whether the name of a column is probably not valid UTF-8.
    var hasReplacedName: Bool { columns.contains { $0.name.unicodeScalars.contains("\u{FFFD}") } }

    /// Returns whether new rows never get the id of a deleted row.
    func isAutoincrement(in connection: Connection) throws -> Bool {
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
    var textOrEmpty: String { if case .text(let text) = self { text } else { "" } }
    var integerOrZero: Int64 { if case .integer(let number) = self { number } else { 0 } }
}

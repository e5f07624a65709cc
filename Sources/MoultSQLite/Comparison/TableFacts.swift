package import MoultBasics

/// Facts from SQLite about a table whose rows are compared.
package struct TableFacts {
    package let name: String
    package let isVirtual: Bool
    /// Why the rows cannot be read, for example because the module of a virtual table is not available; nil if they can be
    /// read.
    package private(set) var obstacle: String?
    /// The columns that are stored: neither generated nor hidden.
    package private(set) var columns: [String] = []
    package private(set) var primaryKey: [String] = []
    /// The column that is an alias of the rowid: INTEGER PRIMARY KEY.
    package private(set) var rowIDColumn: String?
    /// A name for accessing the rowid in SQL; nil if the table has none.
    package private(set) var rowIDName: String?
    /// The tables of a full-text index that stores no text; otherwise empty. They are compared instead of the index's own rows,
    /// whose values SQLite cannot show.
    package private(set) var parts: [TableFacts] = []
    /// Whether the table has no rowid, and is stored by its primary key.
    package private(set) var isWithoutRowID = false
    /// The root page of the table's B-tree; nil for a virtual table.
    package private(set) var rootPage: Int64?

    /// Returns every table that has rows of its own, by name; names are compared as in SQLite.
    package static func all(of connection: Connection) throws -> [SQLName: TableFacts] {
        var tables: [SQLName: TableFacts] = [:]
        let (roots, parts) = (try RootPages(of: connection), try connection.partsOfIndexesWithoutText())
        let list = try connection.listedTables()
        let withRowID = Set(list.filter { !$0.isWithoutRowID }.compactMap { $0.name.map { SQLName($0) } })
        for table in list where table.type == "table" || table.type == "virtual" {
            guard let name = table.name else {
                let facts = TableFacts(undecodable: table.shown, isVirtual: table.type == "virtual")
                tables[SQLName(table.shown)] = facts
                continue
            }
            if name.hasBytePrefix("sqlite_") { continue }
            var facts = try TableFacts(
                name, isVirtual: table.type == "virtual", hasRowID: withRowID.contains(SQLName(name)), connection)
            facts.rootPage = roots[name]
            facts.isWithoutRowID = table.isWithoutRowID
            facts.parts = try parts[SQLName(name), default: []].map {
                try TableFacts($0, isVirtual: false, hasRowID: withRowID.contains(SQLName($0)), connection)
            }
            tables[SQLName(name)] = facts
        }
        return tables
    }

    private init(undecodable shown: String, isVirtual: Bool) {
        (name, self.isVirtual, obstacle) = (shown, isVirtual, "its name is not valid UTF-8")
    }

    package func part(_ name: SQLName) -> TableFacts? { parts.first { SQLName($0.name) == name } }

    private init(_ name: String, isVirtual: Bool, hasRowID: Bool, _ connection: Connection) throws {
        self.name = name
        self.isVirtual = isVirtual
        do {
            try read(connection, hasRowID: hasRowID)
        } catch {
            guard isVirtual, let sqlite = error.sqlite, case .error = sqlite.resultCode else { throw error }
            obstacle = sqlite.message
        }
    }

    private mutating func read(_ connection: Connection, hasRowID: Bool) throws {
        let pragma = "PRAGMA main.table_xinfo(\(quoteIdentifier(name)))"
        let areDecodable = try connection.withOnlyStatement(pragma, []) { row in
            while try row.step() {
                if try row.withText(1, { String(validating: $0, as: UTF8.self) }) == nil { return false }
            }
            return true
        }
        if !areDecodable {
            obstacle = "the name of a column is not valid UTF-8"
            return
        }
        let rows = try connection.query(pragma)
        let stored = rows.filter { $0[6] == .integer(0) }
        columns = stored.map { $0[1].textOrEmpty }
        primaryKey = stored.filter { $0[5].integerOrZero > 0 }.sorted { $0[5].integerOrZero < $1[5].integerOrZero }
            .map { $0[1].textOrEmpty }
        if !hasRowID, !isVirtual, let collation = try connection.missingCollations(of: name).first {
            obstacle = "its rows are in the order of the app's collation \"\(collation)\""
        }
        let taken = Set(rows.map { SQLName($0[1].textOrEmpty) })
        guard hasRowID, let free = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains(SQLName($0)) }) else {
            return
        }
        if isVirtual {
            rowIDName = try canRead(free, connection) ? free : nil
            return
        }
        rowIDName = free
        // If the primary key is not the rowid itself, it has its own index.
        let keyIndex = try connection.query("PRAGMA main.index_list(\(quoteIdentifier(name)))")
            .contains { $0[3].textOrEmpty == "pk" }
        if primaryKey.count == 1, !keyIndex { rowIDColumn = primaryKey[0] }
    }

    /// Returns whether a column can be read. A virtual table may have no rowid, and only a statement that uses it can tell.
    private func canRead(_ column: String, _ connection: Connection) throws -> Bool {
        do {
            return try connection.withStatement("SELECT \(column) FROM main.\(quoteIdentifier(name))") {
                $0.columnCount == 1
            }
        } catch {
            guard let sqlite = error.sqlite, case .error = sqlite.resultCode else { throw error }
            return false
        }
    }
}

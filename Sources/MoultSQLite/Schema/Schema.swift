package import MoultBasics

/// A table or view as SQLite lists it.
package struct ListedTable {
    /// SQLite accepts a name that is not valid UTF-8, but no `String` can hold it.
    fileprivate let bytes: [UInt8]
    /// Nil if the name is not valid UTF-8.
    package let name: String?
    /// `table`, `virtual`, `shadow` (a part of a virtual table) or `view`.
    package fileprivate(set) var type: String
    package let isWithoutRowID: Bool

    /// The name for messages, with escapes for invalid bytes.
    package var shown: String {
        if let name { return name }
        var (text, rest) = ("", bytes[...])
        while let first = rest.first {
            let valid = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }.first
            text += valid ?? "\\x\(String(first, radix: 16))"
            rest = rest.dropFirst(valid?.utf8.count ?? 1)
        }
        return text
    }
}

extension Connection {
    /// Returns all tables and views as SQLite lists them, or only the one of this name.
    package func listedTables(named name: String? = nil) throws -> [ListedTable] {
        var tables: [ListedTable] = []
        let argument = name.map { "(\(quoteIdentifier($0)))" } ?? ""
        try withOnlyStatement("PRAGMA main.table_list\(argument)", []) { row in
            while try row.step() {
                guard try row.text(0) == "main" else { continue }
                let bytes = try row.withText(1) { Array($0) }
                tables.append(
                    ListedTable(
                        bytes: bytes, name: String(validating: bytes, as: UTF8.self), type: try row.text(2),
                        isWithoutRowID: row.int64(4) == 1))
            }
        }
        return tables
    }

    /// Returns whether a name or definition in the schema is not valid UTF-8. SQLite accepts that, but no `String` can hold it.
    package func hasUndecodableNames() throws -> Bool {
        try withOnlyStatement("SELECT name, tbl_name, sql FROM main.sqlite_schema", []) { row in
            while try row.step() {
                for column in Int32(0)..<3 {
                    if try !row.isNull(column) && row.withText(column, { String(validating: $0, as: UTF8.self) == nil })
                    {
                        return true
                    }
                }
            }
            return false
        }
    }

    fileprivate func rowCount(ofTableNamed name: [UInt8]) throws -> Int {
        let quote = UInt8(ascii: "\"")
        let quoted = [quote] + name.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
        let sql = Array("SELECT count(*) FROM main.".utf8) + quoted + Array(" NOT INDEXED".utf8)
        return try withOnlyStatement(bytes: sql) { Int(try $0.step() ? $0.int64(0) : 0) }
    }
}

/// The tables of a database, read once: listing a single table compares the names of all.
package struct Schema {
    package let connection: Connection
    /// The tables and views whose names are valid UTF-8, except SQLite's own and the ignored ones.
    package let all: [SQLName: ListedTable]
    package let undecodable: [ListedTable]
    /// The statement that created each table, and its root page, which is 0 for a virtual table.
    private let made: [SQLName: (sql: String, rootPage: Int64)]

    package init(of connection: Connection, ignoring: Set<String> = []) throws {
        self.connection = connection
        let sql = "SELECT name, sql, rootpage FROM main.sqlite_schema WHERE type = 'table'"
        let made = Dictionary(
            try connection.query(sql).map {
                (SQLName($0[0].textOrEmpty), (sql: $0[1].textOrEmpty, rootPage: $0[2].integerOrZero))
            }
        ) { first, _ in first }
        let ignored = Set(ignoring.map { SQLName($0) })
        let listed = try connection.listedTables()
        var all: [SQLName: ListedTable] = [:]
        for table in listed {
            guard let name = table.name, !SQLName(name).isInternal, !ignored.contains(SQLName(name)) else { continue }
            all[SQLName(name)] = table
            if table.type == "shadow", !ModuleTables.isPart(name, { made[$0]?.sql }) {
                all[SQLName(name)]?.type = "table"
            }
        }
        (self.made, self.all, undecodable) = (made, all, listed.filter { $0.name == nil })
    }

    /// The tables with rows of their own, also those without a readable name.
    package var withRows: [SQLName: ListedTable] {
        undecodable.reduce(into: all) { $0[SQLName($1.shown)] = $1 }.filter {
            ["table", "virtual"].contains($0.value.type)
        }
    }

    package var ordinary: [SQLName] { names("table") }

    /// Virtual tables with their own content: the text of a full-text index may be in another table.
    package var virtual: [SQLName] {
        names("virtual").filter { SearchIndexes.content(ofIndexMadeBy: made[$0]?.sql ?? "") == nil }
    }

    private func names(_ type: String) -> [SQLName] { all.filter { $0.value.type == type }.keys.sorted() }

    package func name(_ table: SQLName) -> String { all[table]?.name ?? table.text }

    /// Whether the table is an R-tree, whose rows only SQLite can read: several of them share a row of the table in which they are
    /// stored.
    package func isTree(_ table: SQLName) -> Bool { ModuleTables.isTree(madeBy: made[table]?.sql ?? "") }

    /// Returns the tables in which a virtual table keeps its content: only the table of its rows, if that is separate from its
    /// index.
    package func shadows(of virtual: SQLName) -> [SQLName] {
        let content = SQLName("\(virtual)_content")
        return all[content]?.type == "shadow" ? [content] : names("shadow").filter { $0.hasPrefix("\(virtual)_") }
    }

    /// Returns the tables of a full-text index that stores no text itself (`content=''` or `content='docs'`); none for any other
    /// table. Only these show whether two such indexes are equal: SQLite reads the text from the other table.
    package func parts(ofIndex index: SQLName) -> [SQLName] {
        guard all[index]?.type == "virtual", SearchIndexes.option(ofIndexMadeBy: made[index]?.sql ?? "") != nil else {
            return []
        }
        return names("shadow").filter { ModuleTables.owner(of: $0.text).map { SQLName($0) } == index }
    }

    /// Returns the columns and keys of a table or virtual table; nil if the database has none of this name.
    package func table(_ name: SQLName) throws -> TableLayout? {
        guard let listed = all[name], let spelling = listed.name, listed.type != "view" else { return nil }
        return try TableLayout(spelling, listed, rootPage: made[name]?.rootPage, connection)
    }

    /// Returns a table that SQLite has listed. A table that cannot be found again must not be taken for one without rows.
    package func listed(_ name: SQLName) throws -> TableLayout {
        if let table = try table(name) { return table }
        throw MoultError(
            .databaseRequest, what: "cannot read the table \"\(name)\" in \(connection.path)",
            why: "SQLite lists the table, but does not find it by its name")
    }

    /// The number of rows in each table whose name is not valid UTF-8, by the name that messages show. A virtual table is listed
    /// without its rows.
    package func undecodableRowCounts() throws -> [SQLName: Int] {
        try undecodable.reduce(into: [:]) { counts, table in
            counts[SQLName(table.shown), default: 0] +=
                table.type == "table" ? try connection.rowCount(ofTableNamed: table.bytes) : 0
        }
    }
}

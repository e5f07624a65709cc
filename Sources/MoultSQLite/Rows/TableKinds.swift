import MoultBasics

/// The tables of a database by name, except SQLite's own and the ignored ones.
struct TableKinds {
    struct Table {
        let name: String
        /// `table`, `virtual`, `shadow` (a part of a virtual table) or `view`.
        let type: String
    }

    /// A table whose name is not valid UTF-8. SQLite accepts such a name, but no `String` can hold it.
    struct Undecodable {
        let name: [UInt8]
        let type: String
        /// The name with replacement characters, for messages; other names may look the same.
        var shown: SQLName { SQLName(String(decoding: name, as: UTF8.self)) }
    }

    /// The tables whose names are valid UTF-8.
    let all: [SQLName: Table]
    let undecodable: [Undecodable]
    /// Full-text indexes whose text is in another table.
    private let derived: Set<SQLName>
    /// R-trees, whose rows only SQLite can read: several of them share a row of the table in which they are stored.
    let trees: Set<SQLName>

    init(of connection: Connection, ignoring: Set<String>) throws {
        let ignored = Set(ignoring.map { SQLName($0) })
        var all: [SQLName: Table] = [:]
        var undecodable: [Undecodable] = []
        try connection.withOnlyStatement("PRAGMA main.table_list", []) { row in
            while try row.step() {
                guard try row.text(0) == "main" else { continue }
                var type = try row.text(2)
                let bytes = try row.withText(1) { Array($0) }
                guard let name = String(validating: bytes, as: UTF8.self) else {
                    undecodable.append(Undecodable(name: bytes, type: type))
                    continue
                }
                let key = SQLName(name)
                if key.isInternal || ignored.contains(key) { continue }
                if type == "shadow", try !ModuleTables.isPart(name, in: connection) { type = "table" }
                all[key] = Table(name: name, type: type)
            }
        }
        (self.all, self.undecodable) = (all, undecodable)
        derived = Set(try SearchIndexes.all(in: connection).map { SQLName($0.name) })
        trees = Set(
            try connection.query("SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0")
                .filter { ModuleTables.isTree(madeBy: $0[1].textOrEmpty) }.map { SQLName($0[0].textOrEmpty) })
    }

    var ordinary: [SQLName] { names("table") }

    /// Virtual tables with their own content.
    var virtual: [SQLName] { names("virtual").filter { !derived.contains($0) } }

    /// Returns the tables in which a virtual table keeps its content: only the table of its rows, if that is separate from its
    /// index.
    func shadows(of virtual: SQLName) -> [SQLName] {
        let content = SQLName("\(virtual)_content")
        return all[content]?.type == "shadow" ? [content] : names("shadow").filter { $0.hasPrefix("\(virtual)_") }
    }

    private func names(_ type: String) -> [SQLName] { all.filter { $0.value.type == type }.keys.sorted() }
}

/// A table or view of a database.
package struct ListedTable {
    /// Nil if the name is not valid UTF-8.
    package let name: String?
    /// The name for messages, with escapes for invalid bytes.
    package let shown: String
    package let type: String
    package let isWithoutRowID: Bool

    fileprivate init(bytes: [UInt8], type: String, isWithoutRowID: Bool) {
        (self.type, self.isWithoutRowID) = (type, isWithoutRowID)
        name = String(validating: bytes, as: UTF8.self)
        shown = name ?? Self.escaped(bytes[...])
    }

    private static func escaped(_ bytes: ArraySlice<UInt8>) -> String {
        var (text, rest) = ("", bytes)
        while let first = rest.first {
            let valid = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }.first
            text += valid ?? "\\x\(String(first, radix: 16))"
            rest = rest.dropFirst(valid?.utf8.count ?? 1)
        }
        return text
    }
}

extension Connection {
    /// Returns whether a name or definition in the schema is not valid UTF-8. SQLite accepts that, but no `String` can hold it.
    package func hasUndecodableNames(in schema: String = "main") throws -> Bool {
        try withOnlyStatement("SELECT name, tbl_name, sql FROM \(quoteIdentifier(schema)).sqlite_schema", []) { row in
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

    /// Returns all tables and views as SQLite lists them.
    package func listedTables() throws -> [ListedTable] {
        var tables: [ListedTable] = []
        try withOnlyStatement("PRAGMA main.table_list", []) { row in
            while try row.step() {
                guard try row.text(0) == "main" else { continue }
                let (bytes, type) = (try row.withText(1) { Array($0) }, try row.text(2))
                tables.append(ListedTable(bytes: bytes, type: type, isWithoutRowID: row.int64(4) == 1))
            }
        }
        return tables
    }

    /// Returns the number of rows in each table whose name is not valid UTF-8, by the name that messages show. A virtual table is
    /// listed without its rows.
    func rowCounts(of tables: [TableKinds.Undecodable]) throws -> [SQLName: Int] {
        var counts: [SQLName: Int] = [:]
        for table in tables {
            counts[table.shown, default: 0] += table.type == "table" ? try rowCount(ofTableNamed: table.name) : 0
        }
        return counts
    }

    private func rowCount(ofTableNamed name: [UInt8]) throws -> Int {
        let quote = UInt8(ascii: "\"")
        let quoted = [quote] + name.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
        let sql = Array("SELECT count(*) FROM main.".utf8) + quoted + Array(" NOT INDEXED".utf8)
        return try withOnlyStatement(bytes: sql) { Int(try $0.step() ? $0.int64(0) : 0) }
    }
}

extension RowSearch {
    /// Returns the positions of columns with the same name.
    static func pairs(_ one: TableLayout, _ two: TableLayout) -> [(row: Int, other: Int)] {
        one.columns.indices.compactMap { place in two.place(of: one.columns[place].name).map { (place, $0) } }
    }

    /// Returns the number of rows of a virtual table that have no equal row in the other database.
    static func countUnmatched(
        virtual table: SQLName, _ kinds: TableKinds, _ connection: Connection, in other: Connection
    ) throws -> Int {
        if kinds.trees.contains(table) {
            do { return try countUnmatched(table, "virtual", connection, in: other) } catch let error as MoultError
                where error.code == .databaseCorrupt || AppNeed(error) != nil
            {
                // The rows of the tables in which it is stored can still be compared, and show any damage of these.
            }
        }
        return try kinds.shadows(of: table).reduce(0) {
            try $0 + countUnmatched($1, "shadow", connection, in: other)
        }
    }

    private static func countUnmatched(
        _ table: SQLName, _ type: String, _ connection: Connection, in other: Connection
    ) throws -> Int {
        let layout = try TableLayout.listed(table, in: connection, type: type)
        guard let otherLayout = try TableLayout.of(table, in: other, type: type) else {
            return Int(try connection.int("\(layout.rows.countSQL)"))
        }
        return try RowSearch(
            Side(layout, connection), in: Side(otherLayout, other), pairs: pairs(layout, otherLayout)
        ).countUnmatched()
    }
}

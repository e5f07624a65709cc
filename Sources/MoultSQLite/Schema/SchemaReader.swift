import CSQLite
import MoultBasics

extension SchemaShape {
    /// Reads the shape of one of the connection's databases. Tables with an ignored name are left out with everything that
    /// belongs to them.
    package init(of connection: Connection, schema: String = "main", ignoring: Set<String> = []) throws {
        // All queries must see the same state of the database.
        self = try connection.reading { try SchemaReader(connection, schema, ignoring).shape() }
    }

    /// Returns the shape without moult's own tables. A comparison of a database with a release's file reads both with this
    /// function, because either may have these tables.
    package static func ofContent(_ connection: Connection) throws -> SchemaShape {
        try SchemaShape(of: connection, ignoring: ownTables)
    }

    /// Creates the shape of an empty database in which these statements have run.
    package init(madeBy sql: String) throws {
        let connection = try Connection.inMemory()
        try connection.execute(sql)
        try self.init(of: connection)
    }
}

/// Queries SQLite about each table, and parses the texts in `sqlite_schema` for facts that SQLite does not report.
private struct SchemaReader {
    /// A row of `sqlite_schema`.
    struct Entry {
        var type: String
        var name: String
        var table: String
        var sql: String
    }

    struct TableKind {
        var name: String
        var type: String
        var options: String
    }

    let connection: Connection
    let schema: String
    let tables: [TableKind]
    let entries: [Entry]
    let columns: [SQLName: [SchemaColumn]]
    let normalizer: SQLNormalizer

    init(_ connection: Connection, _ schema: String, _ ignoring: Set<String>) throws {
        self.connection = connection
        self.schema = schema
        let quoted = quoteIdentifier(schema)
        let ignored = Set(ignoring.map { SQLName($0) })
        let isOurs = { (name: String) in !SQLName(name).isInternal && !ignored.contains(SQLName(name)) }
        let tables = try connection.query("PRAGMA \(quoted).table_list").compactMap { row -> TableKind? in
            guard row[0].textOrEmpty == schema, isOurs(row[1].textOrEmpty), row[2].textOrEmpty != "shadow" else {
                return nil
            }
            let options = [(row[4], "without rowid"), (row[5], "strict")].filter { $0.0 == .integer(1) }.map(\.1)
            return TableKind(
                name: row[1].textOrEmpty, type: row[2].textOrEmpty, options: options.joined(separator: ", "))
        }
        self.tables = tables.sorted { ($0.name, SQLName($0.name)) < ($1.name, SQLName($1.name)) }
        let nonShadowNames = Set(tables.map { SQLName($0.name) })
        entries = try connection.query("SELECT type, name, tbl_name, sql FROM \(quoted).sqlite_schema ORDER BY 1, 2")
            .map {
                Entry(
                    type: $0[0].textOrEmpty, name: $0[1].textOrEmpty, table: $0[2].textOrEmpty, sql: $0[3].textOrEmpty)
            }
            .filter { isOurs($0.name) && nonShadowNames.contains(SQLName($0.table)) }
        var columns: [SQLName: [SchemaColumn]] = [:]
        for table in tables where table.type == "table" {
            columns[SQLName(table.name)] = try connection.query(
                "PRAGMA \(quoted).table_xinfo(\(quoteIdentifier(table.name)))"
            )
            .map(SchemaColumn.init)
        }
        self.columns = columns
        let names = entries.map(\.name) + columns.values.joined().map(\.name)
        normalizer = SQLNormalizer(names: Set(names.map { SQLName($0) }))
    }

    func shape() throws -> SchemaShape {
        let sql = Dictionary(entries.filter { $0.type == "table" }.map { (SQLName($0.name), $0.sql) }) { first, _ in
            first
        }
        var shape = SchemaShape(tables: [], items: [])
        for table in tables {
            switch table.type {
            case "table": shape.tables.append(try read(table, sql[SQLName(table.name)] ?? ""))
            case "virtual":
                shape.items.append(
                    .init(kind: "virtual table", name: table.name, definition: rest(sql[SQLName(table.name)] ?? "", 4)))
            default: break
            }
        }
        for entry in entries {
            switch entry.type {
            // Indexes without text belong to a constraint.
            case "index" where !entry.sql.isEmpty:
                shape.items.append(.init(kind: "index", name: entry.name, definition: try index(entry)))
            case "view", "trigger":
                shape.items.append(.init(kind: entry.type, name: entry.name, definition: rest(entry.sql, 3)))
            default: break
            }
        }
        shape.items.sort { ($0.kind, $0.name, SQLName($0.name)) < ($1.kind, $1.name, SQLName($1.name)) }
        return shape
    }

    /// Returns the text after its first words (CREATE, the kind and the name), which SQLite itself wrote.
    private func rest(_ sql: String, _ words: Int) -> String { normalizer.normalize(sqlTokens(sql).dropFirst(words)) }

    private func read(_ table: TableKind, _ sql: String) throws -> SchemaShape.Table {
        let text = TableText(sql, normalizer)
        var constraints = text.checks.map { "check \($0)" } + text.conflicts
        for index in try connection.query("PRAGMA \(quoted).index_list(\(quoteIdentifier(table.name)))")
        where index[3].textOrEmpty != "c" {
            constraints.append(
                "\(index[3].textOrEmpty == "pk" ? "primary key" : "unique") (\(try keys(of: index[1].textOrEmpty)))")
        }
        constraints += try foreignKeys(of: table.name, deferred: text.deferred)
        return SchemaShape.Table(
            name: table.name, options: table.options,
            columns: try (columns[SQLName(table.name)] ?? []).map { column in
                SchemaShape.Column(
                    name: column.name,
                    facts: column.facts(
                        try metadata(table.name, column.name), text.generated[SQLName(column.name)], normalizer)
                )
            },
            constraints: constraints.sorted())
    }

    private var quoted: String { quoteIdentifier(schema) }

    /// Returns the collation of a column, and whether it is AUTOINCREMENT; no pragma reports these.
    private func metadata(_ table: String, _ column: String) throws -> (collation: String, isAutoincrement: Bool) {
        var collation: UnsafePointer<CChar>?
        var isAutoincrement: Int32 = 0
        let code = try sqlite3_table_column_metadata(
            connection.handle, schema, table, column, nil, &collation, nil, nil, &isAutoincrement)
        // SQLite does not find a column whose name is not valid UTF-8 by the text that represents it.
        let isReplaced = [table, column].contains { $0.unicodeScalars.contains("\u{FFFD}") }
        if code == SQLITE_ERROR, isReplaced { return ("binary", false) }
        try connection.check(code, doing: "read the schema of \(connection.path)")
        return (collation.map { asciiLowercased(String(cString: $0)) } ?? "binary", isAutoincrement != 0)
    }

    private func foreignKeys(of table: String, deferred: [Bool]) throws -> [String] {
        let rows = try connection.query("PRAGMA \(quoted).foreign_key_list(\(quoteIdentifier(table)))")
        let keys = Dictionary(grouping: rows) { $0[0].integerOrZero }
        return keys.map { id, rows in
            let rows = rows.sorted { $0[1].integerOrZero < $1[1].integerOrZero }
            let first = rows[0]
            func names(_ column: Int) -> String {
                rows.map { quoteIdentifier(asciiLowercased($0[column].textOrEmpty)) }.joined(separator: ", ")
            }
            // Without parent columns, the foreign key refers to the parent's primary key.
            let parent = first[4] == .null ? "" : " (\(names(4)))"
            // SQLite numbers foreign keys from last to first.
            let place = keys.count - 1 - Int(id)
            let when = deferred.indices.contains(place) && deferred[place] ? " deferred" : ""
            return
                "foreign key (\(names(3))) references \(quoteIdentifier(asciiLowercased(first[2].textOrEmpty)))\(parent)"
                + " on update \(asciiLowercased(first[5].textOrEmpty)) on delete \(asciiLowercased(first[6].textOrEmpty))\(when)"
        }
    }

    private func index(_ entry: Entry) throws -> String {
        let tokens = sqlTokens(entry.sql)[...]
        let isUnique = tokens.dropFirst().first?.isWord("unique") == true
        guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return normalizer.normalize(tokens) }
        let close = tokens.closingParenthesis(of: open)
        let parts = tokens[(open + 1)..<close].splitAtCommas()
        let predicate = close < tokens.endIndex ? normalizer.normalize(tokens[(close + 1)...]) : ""
        return "\(isUnique ? "unique " : "")on \(quoteIdentifier(asciiLowercased(entry.table))) "
            + "(\(try keys(of: entry.name, parts)))\(predicate.isEmpty ? "" : " \(predicate)")"
    }

    /// Returns the key columns of an index with order and collation; `parts` has the text of each column of a CREATE INDEX.
    private func keys(of index: String, _ parts: [ArraySlice<SQLToken>] = []) throws -> String {
        try connection.query("PRAGMA \(quoted).index_xinfo(\(quoteIdentifier(index)))")
            .filter { $0[5] == .integer(1) }
            .map { row in
                let place = Int(row[0].integerOrZero)
                var key = quoteIdentifier(asciiLowercased(row[2].textOrEmpty))
                if row[1].integerOrZero == -1 { key = "rowid" }
                if row[1].integerOrZero == -2, parts.indices.contains(place) { key = expression(parts[place]) }
                let collation = asciiLowercased(row[4].textOrEmpty)
                return key + (collation == "binary" ? "" : " collate \(collation)")
                    + (row[3].integerOrZero == 1 ? " desc" : "")
            }
            .joined(separator: ", ")
    }

    /// Returns an index expression without its order and collation, which SQLite reports separately.
    private func expression(_ part: ArraySlice<SQLToken>) -> String {
        var part = part
        if let last = part.last, last.isWord("asc") || last.isWord("desc") { part = part.dropLast() }
        if part.dropLast().last?.isWord("collate") == true { part = part.dropLast(2) }
        return normalizer.normalize(part)
    }
}

import CSQLite
import MoultBasics

extension SchemaShape {
    /// Reads the shape of the database. Tables with an ignored name are left out with everything that
    /// belongs to them.
    package init(of connection: Connection, ignoring: Set<String> = []) throws {
        // All queries must see the same state of the database.
        self = try connection.reading { try Reader(connection, ignoring).shape() }
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

extension SchemaShape {
    /// Queries SQLite about each table, and parses the texts in `sqlite_schema` for facts that SQLite does not report.
    fileprivate struct Reader {
        let connection: Connection
        let tables: [(name: String, type: String, options: String)]
        let entries: [(type: String, name: String, table: String, sql: String)]
        /// The rows of `PRAGMA table_xinfo`.
        let columns: [SQLName: [[Value]]]
        let names: Set<SQLName>
    }
}

extension SchemaShape.Reader {
    init(_ connection: Connection, _ ignoring: Set<String>) throws {
        self.connection = connection
        let ignored = Set(ignoring.map { SQLName($0) })
        let isOurs = { (name: String) in !SQLName(name).isInternal && !ignored.contains(SQLName(name)) }
        // table_list: schema, name, type, ncol, wr, strict.
        let tables = try connection.query("PRAGMA main.table_list").filter {
            $0[0].textOrEmpty == "main" && isOurs($0[1].textOrEmpty) && $0[2].textOrEmpty != "shadow"
        }.map { row in
            let options = [(row[4], "without rowid"), (row[5], "strict")].filter { $0.0 == .integer(1) }.map(\.1)
            return (name: row[1].textOrEmpty, type: row[2].textOrEmpty, options: options.joined(separator: ", "))
        }
        self.tables = tables.sorted { ($0.name, SQLName($0.name)) < ($1.name, SQLName($1.name)) }
        let nonShadowNames = Set(tables.map { SQLName($0.name) })
        entries = try connection.query("SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY 1, 2")
            .map { ($0[0].textOrEmpty, $0[1].textOrEmpty, $0[2].textOrEmpty, $0[3].textOrEmpty) }
            .filter { isOurs($0.1) && nonShadowNames.contains(SQLName($0.2)) }
        columns = try tables.filter { $0.type == "table" }.reduce(into: [:]) { columns, table in
            columns[SQLName(table.name)] = try connection.query(
                "PRAGMA main.table_xinfo(\(quoteIdentifier(table.name)))")
        }
        let names = entries.map(\.name) + columns.values.joined().map(\.[1].textOrEmpty)
        self.names = Set(names.map { SQLName($0) })
    }

    func shape() throws -> SchemaShape {
        let sql = Dictionary(entries.filter { $0.type == "table" }.map { (SQLName($0.name), $0.sql) }) { first, _ in
            first
        }
        var shape = SchemaShape(tables: [], items: [])
        for table in tables {
            switch table.type {
            case "table": shape.tables.append(try read(table.name, table.options, sql[SQLName(table.name)] ?? ""))
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
                let definition = try index(entry.name, of: entry.table, entry.sql)
                shape.items.append(.init(kind: "index", name: entry.name, definition: definition))
            case "view", "trigger":
                shape.items.append(.init(kind: entry.type, name: entry.name, definition: rest(entry.sql, 3)))
            default: break
            }
        }
        shape.items.sort { ($0.kind, $0.name, SQLName($0.name)) < ($1.kind, $1.name, SQLName($1.name)) }
        return shape
    }

    /// Returns the text after its first words (CREATE, the kind and the name), which SQLite itself wrote.
    private func rest(_ sql: String, _ words: Int) -> String { normalize(sqlTokens(sql).dropFirst(words)) }

    private func read(_ table: String, _ options: String, _ sql: String) throws -> SchemaShape.Table {
        let text = TableText(sql, normalize)
        var constraints = text.checks.map { "check \($0)" } + text.conflicts
        for index in try connection.query("PRAGMA main.index_list(\(quoteIdentifier(table)))")
        where index[3].textOrEmpty != "c" {
            constraints.append(
                "\(index[3].textOrEmpty == "pk" ? "primary key" : "unique") (\(try keys(of: index[1].textOrEmpty)))")
        }
        constraints += try foreignKeys(of: table, deferred: text.deferred)
        let columns = try (columns[SQLName(table)] ?? []).map { row in
            let name = row[1].textOrEmpty
            return SchemaShape.Column(name: name, facts: try facts(row, table, name, text.generated[SQLName(name)]))
        }
        return SchemaShape.Table(name: table, options: options, columns: columns, constraints: constraints.sorted())
    }

    /// Returns all facts about a column except its name, on one line.
    private func facts(_ row: [Value], _ table: String, _ column: String, _ generated: String?) throws -> String {
        let (type, metadata) = (row[2].textOrEmpty, try metadata(table, column))
        // `varchar ( 10 )` and `VARCHAR(10)` are the same type.
        var facts = [type.isEmpty ? "any type" : sqlTokens(type).map(\.text).joined(separator: " ").uppercased()]
        if row[3] != .integer(0) { facts.append("not null") }
        if row[5].integerOrZero > 0 { facts.append("primary key \(row[5].integerOrZero)") }
        if metadata.isAutoincrement { facts.append("autoincrement") }
        if metadata.collation != "binary" { facts.append("collate \(metadata.collation)") }
        if case .text(let value) = row[4] { facts.append("default \(normalize(value))") }
        // 2: a virtual generated column; 3: a stored one.
        let hidden = row[6].integerOrZero
        if hidden >= 2 { facts.append("\(hidden == 2 ? "virtual" : "stored") as \(generated ?? "")") }
        return facts.joined(separator: " ")
    }

    /// Returns the collation of a column, and whether it is AUTOINCREMENT; no pragma reports these.
    private func metadata(_ table: String, _ column: String) throws -> (collation: String, isAutoincrement: Bool) {
        var collation: UnsafePointer<CChar>?
        var isAutoincrement: Int32 = 0
        let code = try sqlite3_table_column_metadata(
            connection.handle, "main", table, column, nil, &collation, nil, nil, &isAutoincrement)
        // SQLite does not find a column whose name is not valid UTF-8 by the text that represents it.
        let isReplaced = [table, column].contains { $0.unicodeScalars.contains("\u{FFFD}") }
        if code == SQLITE_ERROR, isReplaced { return ("binary", false) }
        try connection.check(code, doing: "read the schema of \(connection.path)")
        return (collation.map { asciiLowercased(String(cString: $0)) } ?? "binary", isAutoincrement != 0)
    }

    private func foreignKeys(of table: String, deferred: [Bool]) throws -> [String] {
        let rows = try connection.query("PRAGMA main.foreign_key_list(\(quoteIdentifier(table)))")
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

    private func index(_ name: String, of table: String, _ sql: String) throws -> String {
        let tokens = sqlTokens(sql)[...]
        let isUnique = tokens.dropFirst().first?.isWord("unique") == true
        guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return normalize(tokens) }
        let close = tokens.closingParenthesis(of: open)
        let parts = tokens[(open + 1)..<close].splitAtCommas()
        let predicate = close < tokens.endIndex ? normalize(tokens[(close + 1)...]) : ""
        return "\(isUnique ? "unique " : "")on \(quoteIdentifier(asciiLowercased(table))) "
            + "(\(try keys(of: name, parts)))\(predicate.isEmpty ? "" : " \(predicate)")"
    }

    /// Returns the key columns of an index with order and collation; `parts` has the text of each column of a CREATE INDEX.
    private func keys(of index: String, _ parts: [ArraySlice<SQLToken>] = []) throws -> String {
        try connection.query("PRAGMA main.index_xinfo(\(quoteIdentifier(index)))")
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
        return normalize(part)
    }

    // MARK: normalization

    /// White space, comments, quotes, and the case of keywords and of mentioned names make no difference.
    private func normalize(_ sql: String) -> String { normalize(sqlTokens(sql)[...]) }

    private func normalize(_ tokens: ArraySlice<SQLToken>) -> String {
        tokens.indices.map { spelling(of: $0, in: tokens) }.joined(separator: " ")
    }

    private func spelling(of index: Int, in tokens: ArraySlice<SQLToken>) -> String {
        let token = tokens[index]
        guard token.kind == .quoted else { return token.text }
        let folded = asciiLowercased(token.text)
        // SQLite treats an unknown name in double quotes as text, and then its case matters.
        let isName =
            names.contains(SQLName(token.text))
            || index > tokens.startIndex && (tokens[index - 1].isWord("as") || tokens[index - 1].isSymbol("."))
            || index + 1 < tokens.endIndex && tokens[index + 1].isSymbol(".")
        guard isName else { return quoteLiteral(.text(token.text)) }
        return isPlain(folded) ? folded : quoteIdentifier(folded)
    }

    private func isPlain(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
            return false
        }
        let tokens = sqlTokens(name)
        return tokens.count == 1 && tokens[0].kind == .word && tokens[0].text == name
    }
}

extension SchemaShape.Reader {
    /// Facts in the text of a CREATE TABLE statement that SQLite's pragmas do not report.
    fileprivate struct TableText {
        var generated: [SQLName: String] = [:]
        var checks: [String] = []
        /// The conflict clauses other than ABORT.
        var conflicts: [String] = []
        /// For each foreign key, in textual order: whether it is deferred to the end of the transaction.
        var deferred: [Bool] = []

        init(_ sql: String, _ normalize: (ArraySlice<SQLToken>) -> String) {
            let tokens = sqlTokens(sql)[...]
            guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return }
            for part in tokens[(open + 1)..<tokens.closingParenthesis(of: open)].splitAtCommas() {
                read(part, normalize)
            }
        }

        /// Parses one definition: a column with its constraints, or table constraints.
        private mutating func read(_ part: ArraySlice<SQLToken>, _ normalize: (ArraySlice<SQLToken>) -> String) {
            guard let first = part.first else { return }
            let isConstraint = first.kind == .word && Self.constraintWords.contains(first.text)
            let column = asciiLowercased(first.kind == .string ? String(first.text.dropFirst().dropLast()) : first.text)
            var subject = isConstraint ? "" : column
            var constraint = ""
            var index = isConstraint ? part.startIndex : part.startIndex + 1
            func word(_ offset: Int) -> String? {
                let place = index + offset
                return place < part.endIndex && part[place].kind == .word ? part[place].text : nil
            }
            while index < part.endIndex {
                if part[index].isSymbol("(") {
                    let close = part.closingParenthesis(of: index)
                    let group = part[index..<Swift.min(close + 1, part.endIndex)]
                    switch word(-1) {
                    case "check": checks.append(normalize(group))
                    case "as": generated[SQLName(column)] = normalize(group)
                    case "key", "unique": subject = normalize(group)
                    default: break
                    }
                    index = close
                } else {
                    switch word(0) {
                    case "constraint": index += 1
                    case "primary", "unique", "check": constraint = word(0) ?? ""
                    case "null" where word(-1) == "not": constraint = "not null"
                    case "references": deferred.append(false)
                    case "deferred" where word(-1) == "initially" && word(-2) == "deferrable" && word(-3) != "not":
                        if !deferred.isEmpty { deferred[deferred.count - 1] = true }
                    case "conflict" where word(-1) == "on":
                        if let action = word(1), action != "abort", constraint != "check" {
                            conflicts.append("\(subject) \(constraint) on conflict \(action)")
                        }
                    default: break
                    }
                }
                index += 1
            }
        }

        private static let constraintWords: Set<String> = ["constraint", "primary", "unique", "check", "foreign"]
    }
}

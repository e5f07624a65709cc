import MoultBasics

extension Salvage.Reader {
    /// How the rows of a table are read from the damaged file, and where they go in the new one.
    struct Way {
        let from: String
        let columns: [String]
        /// The target, if it has another name.
        var into: (table: String, columns: [String])?
        /// The order in which both files can be read; nil for their natural order.
        var order: String?
        /// The order for reading from the other end of the table.
        var reverse: String?

        func select(order: String?, in connection: Connection) throws -> String {
            try "SELECT \(columns.joined(separator: ", ")) FROM \(TableRows(from, in: connection).sql)"
                + (order.map { " ORDER BY \($0)" } ?? "")
        }

        var insert: String {
            let (table, columns) = into ?? (from, columns)
            let values = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
            return "INSERT INTO \(quoteIdentifier(table))(\(columns.joined(separator: ", "))) VALUES(\(values))"
        }
    }

    private struct Column {
        let name: String
        let key: Int64
        let hidden: Int64
    }

    private func columns(_ table: String, in connection: Connection) throws -> [Column] {
        try connection.query("SELECT name, pk, hidden FROM pragma_table_xinfo(?1)", [.text(table)]).compactMap { row in
            guard case .text(let name) = row[0], case .integer(let key) = row[1], case .integer(let hidden) = row[2]
            else { return nil }
            return Column(name: name, key: key, hidden: hidden)
        }
    }

    // MARK: ordinary tables

    func copy(_ table: Salvage.Schema.Object) throws -> Outcome {
        var reason: String?
        var way: Way?
        do {
            try target.declaringStandIns { try create(table.sql) }
            let made = try self.way(table.name, columns(table.name, in: target), keepsGenerated: false)
            // Without the app's extensions, SQLite may be able to create the table but not fill it.
            try target.withStatement(made.insert) { _ in }
            way = made
        } catch {
            let why = try Self.reason(error)
            reason =
                "it could not be recreated, and its rows are in a table without types and constraints: \(why)"
                + "; its definition was: \(table.sql)"
        }
        let chosen = try way ?? plain(table)
        var outcome = try copy(chosen)
        if let reason { outcome.why = reason + (outcome.why.map { "; \($0)" } ?? "") }
        return outcome
    }

    /// Creates a table with the same name and columns, and without constraints, so that it accepts any row.
    private func plain(_ table: Salvage.Schema.Object) throws -> Way {
        try target.run("DROP TABLE IF EXISTS \(quoteIdentifier(table.name))")
        let columns = try columns(table.name, in: source)
        let kept = columns.filter { $0.hidden == 0 || $0.hidden == 3 }.map { quoteIdentifier($0.name) }
        try target.run("CREATE TABLE \(quoteIdentifier(table.name))(\(kept.joined(separator: ", ")))")
        return try way(table.name, columns, keepsGenerated: true)
    }

    private func way(_ table: String, _ columns: [Column], keepsGenerated: Bool) throws -> Way {
        let names = columns.filter { $0.hidden == 0 || keepsGenerated && $0.hidden == 3 }.map {
            quoteIdentifier($0.name)
        }
        let id = freeRowIDName(among: columns.map(\.name))
        // The row number identifies a row that is read twice, once from each end of the table.
        guard let id, try hasRowID(table, id) else {
            let key = columns.filter { $0.key > 0 }.sorted { $0.key < $1.key }
            let reverse = key.map { "\(quoteIdentifier($0.name)) DESC" }.joined(separator: ", ")
            return Way(from: table, columns: names, reverse: reverse.isEmpty ? nil : reverse)
        }
        return Way(from: table, columns: [id] + names, order: id, reverse: "\(id) DESC")
    }

    private func hasRowID(_ table: String, _ id: String) throws -> Bool {
        do {
            try source.readingWithStandIns {
                try source.withStatement("SELECT \(id) FROM \(quoteIdentifier(table))") { _ in }
            }
            return true
        } catch { return false }
    }

    // MARK: virtual tables

    func copy(_ table: Salvage.Schema.Virtual) throws -> Outcome {
        let name = table.object.name
        if case .own(let content) = table.content {
            do { return try copyContent(table, content) } catch {
                // The rows matter more than the index, so the table with the rows is copied unchanged.
                let why = try Self.reason(error)
                if try target.isInTransaction { try target.execute("ROLLBACK") }
                let sql = try source.scalar("SELECT sql FROM sqlite_schema WHERE name = ?1", [.text(content)])
                let made = Salvage.Schema.Object(type: "table", name: content, sql: sql?.textOrEmpty ?? "")
                try target.run("DROP TABLE IF EXISTS \(quoteIdentifier(name))")
                var outcome = try copy(made)
                outcome.why =
                    "it could not be recreated, and its rows are in \(content): \(why)"
                    + (outcome.why.map { "; \($0)" } ?? "")
                return outcome
            }
        }
        try create(table.object.sql)
        if table.content == .inside {
            let names = try columns(name, in: target).filter { $0.hidden == 0 }.map { quoteIdentifier($0.name) }
            return try copy(Way(from: name, columns: names, order: "1"))
        }
        return Outcome(
            why: "only its definition was recovered: salvage cannot read the rows of this \(table.module) table")
    }

    /// Fills a full-text table from the table in which its module keeps the rows, whose first column is the row number.
    private func copyContent(_ table: Salvage.Schema.Virtual, _ content: String) throws -> Outcome {
        let name = table.object.name
        try create(table.object.sql)
        let made = try columns(name, in: target)
        var names = made.filter { $0.hidden == 0 }.map { quoteIdentifier($0.name) }
        let stored = try columns(content, in: target).map { quoteIdentifier($0.name) }
        // FTS4 keeps the language of each row in a hidden column, after the others.
        if stored.count == names.count + 2 {
            let known = [SQLName(name), "docid"]
            names += made.filter { $0.hidden == 1 && !known.contains(SQLName($0.name)) }
                .map { quoteIdentifier($0.name) }
        }
        guard stored.count == names.count + 1 else {
            throw MoultError(
                .databaseRequest, what: "cannot fill \(name)", why: "\(content) has \(stored.count) columns")
        }
        return try copy(
            Way(
                from: content, columns: stored, into: (name, ["rowid"] + names), order: stored[0],
                reverse: "\(stored[0]) DESC"))
    }

    /// Recreates a virtual table without rows of its own, and rebuilds it if it is a full-text index of another table.
    func rebuild(_ table: Salvage.Schema.Virtual) throws -> Outcome {
        try create(table.object.sql)
        if table.content == .elsewhere {
            let name = quoteIdentifier(table.object.name)
            try target.run("INSERT INTO \(name)(\(name)) VALUES('rebuild')")
        }
        return Outcome()
    }

    // MARK: rows

    private func copy(_ way: Way) throws -> Outcome {
        try target.execute("BEGIN")
        var outcome = Outcome()
        let (read, rejected, isAll) = try pass(way, order: nil)
        if !isAll {
            outcome.why = "part of the table is damaged"
            if let reverse = way.reverse { _ = try pass(way, order: reverse) }
        }
        try target.execute("COMMIT")
        outcome.rows = try target.rowCount(way.from)
        if isAll {
            if rejected > 0 {
                outcome.why =
                    "\(counted(rejected, "row")) that \(rejected == 1 ? "violates" : "violate") the constraints of the table \(rejected == 1 ? "was" : "were") not stored"
            } else if outcome.rows != read {
                outcome.why = "\(read) rows were read, and \(outcome.rows) are stored"
            } else if try !isExact(way) {
                outcome.why = "some values are stored in a different form than in the damaged file"
            }
        }
        // Any reason counts as damage: rows from another database's journal or WAL, for example, do not fit the table.
        outcome.isDamaged = outcome.why != nil
        return outcome
    }

    /// Copies rows up to the end of the table, or up to a row that cannot be read.
    private func pass(_ way: Way, order: String?) throws -> (rows: Int, rejected: Int, isAll: Bool) {
        var (count, rejected) = (0, 0)
        return try target.withStatement(way.insert) { insert in
            do {
                return try source.readingWithStandIns {
                    try source.withStatement(way.select(order: order, in: source)) { rows in
                        while try rows.step() {
                            try insert.bind(rows)
                            do {
                                if try !store(insert) { rejected += 1 }
                            } catch let error as MoultError { throw Salvage.TargetFailure(error: error) }
                            count += 1
                        }
                        return (count, rejected, true)
                    }
                }
            } catch let error as MoultError {
                // Errors of the target have another type, so these codes mean that the source is damaged. Any other error ends
                // the attempt.
                guard error.code == .databaseCorrupt || error.sqlite?.resultCode.primary == .ioError else {
                    throw error
                }
                return (count, rejected, false)
            }
        }
    }

    /// Stores a row. Returns false if the table rejects it, because it already exists or violates the table's rules.
    private func store(_ insert: borrowing Statement) throws -> Bool {
        do { try insert.run() } catch {
            insert.reset()
            switch error.sqlite?.resultCode {
            case .constraint?, .mismatch?, .tooBig?: return false
            default: throw error
            }
        }
        insert.reset()
        return true
    }

    /// Returns whether both files hold the same values with the same storage classes.
    private func isExact(_ way: Way) throws -> Bool {
        let encoding = try Connection.commonEncoding(source, target)
        return try source.readingWithStandIns {
            try source.withStatement(way.select(order: way.order, in: source)) { before in
                try target.withStatement(way.select(order: way.order, in: target)) { after in
                    while try before.step() {
                        guard try after.step(), try before.hasValues(of: after, encoding) else { return false }
                    }
                    return try !after.step()
                }
            }
        }
    }
}

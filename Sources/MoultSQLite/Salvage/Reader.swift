import MoultBasics

extension Salvage {
    /// Reads one damaged file table by table, as far as SQLite gets.
    struct Reader {
        private let source: Connection
        private let target: Connection

        /// A file that was made to keep a reader busy must not.
        private static let deadline: Double = 300

        init(_ path: String, into target: String) throws {
            source = try Connection(path: path, access: .readWrite)
            // The first read rolls back or replays what lies beside the copy.
            _ = try source.int("PRAGMA schema_version")
            try source.raiseGuard(deadline: Self.deadline)
            // A table whose schema cannot be understood must not keep the others from being read.
            try source.set(.defensive, false)
            try source.set(.writableSchema, true)
            self.target = try Connection(path: target, access: .readWriteCreate)
        }

        func read() throws -> Report {
            var report = Report()
            let tables = try tables(&report)
            try target.execute(
                "PRAGMA synchronous = OFF; PRAGMA user_version = \(try source.int("PRAGMA user_version"))")
            for table in tables {
                // What one table does not give up is no reason to leave the others.
                do {
                    try report.tables.append(copy(table))
                } catch {
                    if try target.isInTransaction { try target.execute("ROLLBACK") }
                    report.note = report.note ?? "table \(table.name): \((error as? MoultError)?.why ?? "\(error)")"
                }
            }
            try target.close()
            try source.close()
            return report
        }

        private struct Source {
            let name: String
            let sql: String
        }

        private func tables(_ report: inout Report) throws -> [Source] {
            var tables: [Source] = []
            var virtual: [String] = []
            do {
                try source.withStatement("SELECT name, sql FROM sqlite_schema WHERE type = 'table'") { rows in
                    while try rows.step() {
                        let table = Source(name: try rows.text(0), sql: try rows.text(1))
                        if table.name.hasPrefix("sqlite_") { continue }
                        if table.sql.lowercased().hasPrefix("create virtual") {
                            virtual.append(table.name)
                        } else {
                            tables.append(table)
                        }
                    }
                }
            } catch {
                if tables.isEmpty { throw error }
                report.note = (error as? MoultError)?.why
            }
            // What a module keeps for itself is of no use without it.
            return tables.filter { table in !virtual.contains { table.name.hasPrefix("\($0)_") } }
        }

        private func copy(_ table: Source) throws -> Table {
            // The text is the damaged file's, and may be anything.
            try target.raiseScriptGuard(deadline: Self.deadline)
            let made = Result { try target.execute(table.sql) }
            try target.lowerScriptGuard()
            try made.get()
            let name = quoteIdentifier(table.name)
            let columns = try target.query("SELECT name FROM pragma_table_info(?1)", [.text(table.name)]).compactMap {
                if case .text(let name)? = $0.first { name } else { nil }
            }
            let hasRowID = try hasRowID(name) && !columns.contains { $0.lowercased() == "rowid" }
            // With its number a row that is met twice, from both ends, is known again.
            let all = (hasRowID ? ["rowid"] : []) + columns.map(quoteIdentifier)
            let list = all.joined(separator: ", ")
            let insert =
                "INSERT OR IGNORE INTO \(name)(\(list)) VALUES(\(all.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))"
            try target.execute("BEGIN")
            let select = "SELECT \(list) FROM \(name)"
            var (read, isWhole) = try pass(select, insert)
            if !isWhole, hasRowID { _ = try pass("\(select) ORDER BY rowid DESC", insert) }
            try target.execute("COMMIT")
            let rows = Int(try target.int("SELECT count(*) FROM \(name)"))
            // Rows that break the rules of their own table are not those that were written to it.
            if rows < read { isWhole = false }
            return Table(name: table.name, rows: rows, isWhole: isWhole)
        }

        /// Copies rows until there are no more, or until one cannot be read; says how many, and whether that was all.
        private func pass(_ select: String, _ insert: String) throws -> (rows: Int, isAll: Bool) {
            var count = 0
            return try target.withStatement(insert) { insert in
                do {
                    return try source.withStatement(select) { rows in
                        while try rows.step() {
                            try insert.bind(rows.row())
                            try insert.run()
                            insert.reset()
                            count += 1
                        }
                        return (count, true)
                    }
                } catch let error as MoultError {
                    // The target is sound, so this is the source; anything but damage ends the attempt.
                    guard error.code == .databaseCorrupt || error.sqlite?.resultCode.primary == .ioError else {
                        throw error
                    }
                    return (count, false)
                }
            }
        }

        private func hasRowID(_ name: String) throws -> Bool {
            do {
                try target.withStatement("SELECT rowid FROM \(name)") { _ in }
                return true
            } catch { return false }
        }
    }
}

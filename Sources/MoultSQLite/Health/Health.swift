import MoultBasics

extension Connection {
    /// Checks the structure of the whole file, without looking each row up in each index. Returns the findings; empty if there
    /// are none.
    ///
    /// SQLite must check the file as a whole to detect a page that two tables share, or that belongs to none. **CHECK
    /// constraints are checked only if the database is open read-write:** SQLite does not even load the constraints of a
    /// database that it cannot write to.
    package func quickCheck(schema: String = "main", limit: Int = 100, deadline: Double? = nil) throws -> [String] {
        try findings("PRAGMA \(quoteIdentifier(schema)).quick_check(\(limit))", deadline)
    }

    /// Checks one table and its indexes, and returns the findings. Does not detect pages shared with other tables.
    func quickCheck(ofTable table: String) throws -> [String] {
        try findings("PRAGMA main.quick_check(\(quoteLiteral(.text(table))))", nil)
    }

    /// Runs every check that SQLite offers except foreign keys, and returns the findings.
    package func integrityCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil
    ) throws -> [String] {
        try findings("PRAGMA \(quoteIdentifier(schema)).integrity_check(\(limit))", deadline)
    }

    /// Returns a finding for each row that refers to a missing row.
    package func foreignKeyCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil
    ) throws -> [String] {
        try foreignKeyCheck("PRAGMA \(quoteIdentifier(schema)).foreign_key_check", limit, deadline)
    }

    /// Returns a finding for each row of one table that refers to a missing row.
    func foreignKeyCheck(ofTable table: String, limit: Int) throws -> [String] {
        try foreignKeyCheck("PRAGMA main.foreign_key_check(\(quoteLiteral(.text(table))))", limit, nil)
    }

    private func foreignKeyCheck(_ sql: String, _ limit: Int, _ deadline: Double?) throws -> [String] {
        try collect(deadline) { findings in
            try withStatement(sql) { statement in
                while findings.count < limit, try statement.step() {
                    // A table WITHOUT ROWID has no row number to report.
                    let row = statement.isNull(1) ? "a row" : "row \(statement.int64(1))"
                    findings.append(
                        "\(row) of table \(try statement.text(0)) refers to a row of \(try statement.text(2)) "
                            + "that does not exist")
                }
            }
        }
    }

    private func findings(_ sql: String, _ deadline: Double?) throws -> [String] {
        try collect(deadline) { findings in
            try withStatement(sql) { statement in
                while try statement.step() {
                    // SQLite reports all faults of a database's pages as a single text below a heading.
                    let lines = try statement.text(0).split(separator: "\n").map(String.init)
                    findings += lines.filter { $0 != "ok" && !$0.hasPrefix("*** in database ") }
                }
            }
        }
    }

    /// Runs a check and returns its findings. Damage that stops the check itself is a finding too.
    func collect(_ deadline: Double?, _ body: (inout [String]) throws -> Void) throws -> [String] {
        var findings: [String] = []
        do {
            if let deadline {
                try withDeadline(seconds: deadline) { try body(&findings) }
            } else {
                try body(&findings)
            }
        } catch {
            switch error.sqlite?.resultCode {
            case .corrupt?, .notADatabase?: findings.append(error.sqlite?.message ?? "\(error)")
            default: throw error
            }
        }
        return findings
    }
}

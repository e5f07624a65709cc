import MoultBasics

extension Connection {
    /// Checks the structure of the whole file, without looking each row up in each index; the findings, none if it is
    /// sound.
    ///
    /// It goes through the file as a whole: only then is a page noticed that two tables share, or that none has. **CHECK
    /// constraints are checked only if the database is open read-write:** SQLite does not even load those of one that it
    /// cannot write.
    package func quickCheck(schema: String = "main", limit: Int = 100, deadline: Double? = nil) throws -> [String] {
        try findings("PRAGMA \(quoteIdentifier(schema)).quick_check(\(limit))", deadline)
    }

    /// Checks one table with its indexes; the findings, none if they are sound. What others have of its pages is not seen.
    func quickCheck(ofTable table: String) throws -> [String] {
        try findings("PRAGMA main.quick_check(\(quoteLiteral(.text(table))))", nil)
    }

    /// Checks everything that SQLite can check but foreign keys; the findings, none if it is sound.
    package func integrityCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil
    ) throws -> [String] {
        try findings("PRAGMA \(quoteIdentifier(schema)).integrity_check(\(limit))", deadline)
    }

    /// Looks for rows that refer to a row which does not exist; the findings, none if all are.
    package func foreignKeyCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil
    ) throws -> [String] {
        try foreignKeyCheck("PRAGMA \(quoteIdentifier(schema)).foreign_key_check", limit, deadline)
    }

    /// The same for the references of one table.
    func foreignKeyCheck(ofTable table: String, limit: Int) throws -> [String] {
        try foreignKeyCheck("PRAGMA main.foreign_key_check(\(quoteLiteral(.text(table))))", limit, nil)
    }

    private func foreignKeyCheck(_ sql: String, _ limit: Int, _ deadline: Double?) throws -> [String] {
        try collect(deadline) { findings in
            try withStatement(sql) { statement in
                while findings.count < limit, try statement.step() {
                    // A table WITHOUT ROWID has no number to tell.
                    let row = statement.isNull(1) ? "a row" : "row \(statement.int64(1))"
                    findings.append(
                        "\(row) of table \(try statement.text(0)) refers to a row of \(try statement.text(2)) "
                            + "that is not there")
                }
            }
        }
    }

    private func findings(_ sql: String, _ deadline: Double?) throws -> [String] {
        try collect(deadline) { findings in
            try withStatement(sql) { statement in
                while try statement.step() {
                    // All that is wrong with the pages of a database comes as one text, below a headline.
                    let lines = try statement.text(0).split(separator: "\n").map(String.init)
                    findings += lines.filter { $0 != "ok" && !$0.hasPrefix("*** in database ") }
                }
            }
        }
    }

    /// Damage that keeps the check itself from going on is a finding, too.
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

import MoultBasics

extension Connection {
    /// Checks the structure of the whole file, without looking each row up in each index. Returns the findings; empty if there
    /// are none.
    ///
    /// SQLite must check the file as a whole to detect a page that two tables share, or that belongs to none. **CHECK
    /// constraints are checked only if the database is open read-write:** SQLite does not even load the constraints of a
    /// database that it cannot write to.
    package func quickCheck(schema: String = "main", limit: Int = 100, deadline: Double? = nil) throws -> [String] {
        try findings("quick_check", schema, limit: limit, deadline)
    }

    /// Checks one table and its indexes, and returns the findings. Does not detect pages shared with other tables.
    func quickCheck(ofTable table: String) throws -> [String] {
        try findings("quick_check", "main", of: table)
    }

    /// Runs every check that SQLite offers except foreign keys, and returns the findings.
    package func integrityCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil
    ) throws -> [String] {
        try findings("integrity_check", schema, limit: limit, deadline)
    }

    /// Does the same for one table and its indexes.
    func integrityCheck(ofTable table: String, schema: String) throws -> [String] {
        try findings("integrity_check", schema, of: table)
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

    private func findings(
        _ check: String, _ schema: String, of table: String? = nil, limit: Int = 100, _ deadline: Double? = nil
    ) throws -> [String] {
        try collect(deadline) { findings in
            var nulls = NullFindings(connection: self, schema: quoteIdentifier(schema))
            // Findings that are not true must not use up the limit.
            let most = try nulls.canBeFalse() ? Int(Int32.max) : limit
            let argument = table.map { quoteLiteral(.text($0)) } ?? "\(most)"
            try withStatement("PRAGMA \(quoteIdentifier(schema)).\(check)(\(argument))") { statement in
                while findings.count < limit, try statement.step() {
                    // SQLite reports all faults of a database's pages as a single text below a heading.
                    let lines = try statement.text(0).split(separator: "\n").map(String.init)
                    for line in lines where line != "ok" && !line.hasPrefix("*** in database ") {
                        if try !nulls.isFalse(line) { findings.append(line) }
                    }
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

/// Findings about NULL in a column that must not have it. In a table WITHOUT ROWID, SQLite 3.40 looks at the wrong place for each
/// column that is declared before a column of the key, and reports NULL in every row.
private struct NullFindings {
    let connection: Connection
    let schema: String
    private var known: [String: Bool] = [:]

    init(connection: Connection, schema: String) { (self.connection, self.schema) = (connection, schema) }

    /// Whether the database has a table about which SQLite may say this.
    func canBeFalse() throws -> Bool { try !tables().isEmpty }

    mutating func isFalse(_ finding: String) throws -> Bool {
        guard finding.hasPrefix("NULL value in ") else { return false }
        if let answer = known[finding] { return answer }
        let answer = try tables().contains { table in
            // table_xinfo: cid, name, type, notnull.
            try connection.query("PRAGMA \(schema).table_xinfo(\(quoteIdentifier(table)))").contains { row in
                let column = row[1].textOrEmpty
                guard row[3] != .integer(0), finding.hasBytes(of: "NULL value in \(table).\(column)") else {
                    return false
                }
                // SQLite takes the constraint for granted and answers `IS NULL` without a look.
                let name = quoteIdentifier(column)
                return try connection.int(
                    "SELECT count(*) FROM \(schema).\(quoteIdentifier(table)) WHERE typeof(\(name)) = 'null'") == 0
            }
        }
        known[finding] = answer
        return answer
    }

    /// The tables WITHOUT ROWID. table_list: schema, name, type, ncol, wr, strict.
    private func tables() throws -> [String] {
        try connection.query("PRAGMA \(schema).table_list").filter { $0[4] == .integer(1) }.map { $0[1].textOrEmpty }
    }
}

import MoultBasics

extension Connection {
    /// Checks the structure of the whole file, without looking each row up in each index. Returns the findings; empty if there
    /// are none. SQLite must check the file as a whole to detect a page that two tables share, or that belongs to none. **CHECK
    /// constraints are checked only if the database is open read-write:** SQLite does not even load the constraints of a database
    /// that it cannot write to.
    package func quickCheck(limit: Int = 100) throws -> [String] { try findings("quick_check", limit: limit) }

    /// Checks one table and its indexes, and returns the findings. Does not detect pages shared with other tables.
    func quickCheck(ofTable table: String) throws -> [String] { try findings("quick_check", of: table) }

    /// Runs every check that SQLite offers except foreign keys, and returns the findings.
    package func integrityCheck(limit: Int = 100) throws -> [String] { try findings("integrity_check", limit: limit) }

    /// Does the same for one table and its indexes.
    func integrityCheck(ofTable table: String) throws -> [String] { try findings("integrity_check", of: table) }

    /// Returns a finding for each row, or each row of one table, that refers to a missing row.
    package func foreignKeyCheck(ofTable table: String? = nil, limit: Int = 100) throws -> [String] {
        let argument = table.map { "(\(quoteLiteral(.text($0))))" } ?? ""
        return try collect { findings in
            try withStatement("PRAGMA main.foreign_key_check\(argument)") { statement in
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

    private func findings(_ check: String, of table: String? = nil, limit: Int = 100) throws -> [String] {
        try collect { findings in
            var nulls = NullFindings(connection: self)
            // Findings that are not true must not use up the limit.
            let most = try nulls.canBeFalse() ? Int(Int32.max) : limit
            let argument = table.map { quoteLiteral(.text($0)) } ?? "\(most)"
            try withStatement("PRAGMA main.\(check)(\(argument))") { statement in
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
    func collect(_ body: (inout [String]) throws -> Void) throws -> [String] {
        var findings: [String] = []
        do { try body(&findings) } catch {
            switch error.sqlite?.resultCode {
            case .corrupt?, .notADatabase?: findings.append(error.sqlite?.message ?? "\(error)")
            default: throw error
            }
        }
        return findings
    }

    // MARK: the full check

    /// Finds everything that `integrityCheck` finds, in most cases without looking each row up in each index. `quickCheck`
    /// verifies the structure and every single row; scans of each table and its indexes then verify that they agree. SQLite's
    /// `integrity_check` covers the tables that scans cannot compare, and runs for the whole database after a fault, so that the
    /// findings are SQLite's own.
    package func fullCheck(limit: Int = 100) throws -> [String] {
        var findings = try quickCheck(limit: limit)
        // The scans find tables by their names.
        if try findings.isEmpty && hasUndecodableNames() { return try integrityCheck(limit: limit) }
        if findings.isEmpty { findings = try collect { try compareIndexes(&$0) } }
        if findings.isEmpty { return [] }
        let known = try integrityCheck(limit: limit)
        return known.isEmpty ? findings : known
    }

    private func compareIndexes(_ findings: inout [String]) throws {
        for table in try tablesWithOrder() {
            let layout = try TableIndexes(table, in: self)
            findings += try layout.map { try $0.disagreements(in: self) } ?? integrityCheck(ofTable: table)
            if !findings.isEmpty { return }
        }
    }

    /// Returns the tables whose key order `quickCheck` does not verify: those with indexes, and those WITHOUT ROWID, which are
    /// indexes themselves.
    private func tablesWithOrder() throws -> [String] {
        let indexed = try query("SELECT DISTINCT tbl_name FROM main.sqlite_schema WHERE type = 'index'").map { $0[0] }
        // table_list: schema, name, type, ncol, wr, strict.
        let withoutRowID = try query("PRAGMA main.table_list").filter { $0[4] == .integer(1) }.map { $0[1] }
        return (indexed + withoutRowID.filter { !indexed.contains($0) }).compactMap {
            if case .text(let name) = $0 { name } else { nil }
        }
    }
}

/// Findings about NULL in a column that must not have it. In a table WITHOUT ROWID, SQLite 3.40 looks at the wrong place for each
/// column that is declared before a column of the key, and reports NULL in every row.
private struct NullFindings {
    private let connection: Connection
    private var known: [String: Bool] = [:]

    init(connection: Connection) { self.connection = connection }

    /// Whether the database has a table about which SQLite may say this.
    func canBeFalse() throws -> Bool { try !tables().isEmpty }

    mutating func isFalse(_ finding: String) throws -> Bool {
        guard finding.hasPrefix("NULL value in ") else { return false }
        if let answer = known[finding] { return answer }
        let answer = try tables().contains { table in
            // table_xinfo: cid, name, type, notnull.
            try connection.query("PRAGMA main.table_xinfo(\(quoteIdentifier(table)))").contains { row in
                let column = row[1].textOrEmpty
                guard row[3] != .integer(0), finding.hasBytes(of: "NULL value in \(table).\(column)") else {
                    return false
                }
                // SQLite takes the constraint for granted and answers `IS NULL` without a look.
                let name = quoteIdentifier(column)
                return try connection.int(
                    "SELECT count(*) FROM main.\(quoteIdentifier(table)) WHERE typeof(\(name)) = 'null'") == 0
            }
        }
        known[finding] = answer
        return answer
    }

    /// The tables WITHOUT ROWID. table_list: schema, name, type, ncol, wr, strict.
    private func tables() throws -> [String] {
        try connection.query("PRAGMA main.table_list").filter { $0[4] == .integer(1) }.map { $0[1].textOrEmpty }
    }
}

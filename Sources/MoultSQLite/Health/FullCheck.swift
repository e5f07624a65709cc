extension Connection {
    /// Finds everything that `integrityCheck` finds, mostly without looking each row up in each index.
    ///
    /// `quickCheck` proves the structure and every row by itself; scans of table and index then prove that they agree.
    /// What scans do not cover, SQLite checks. So it does where anything at all was found: its words are known.
    /// `isQuicklySound` says that `quickCheck` would find nothing.
    package func fullCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil, isQuicklySound: Bool = false
    ) throws -> [String] {
        var findings = isQuicklySound ? [] : try quickCheck(schema: schema, limit: limit, deadline: deadline)
        if findings.isEmpty { findings = try collect(deadline) { try compareIndexes(schema, &$0) } }
        if findings.isEmpty { return [] }
        let known = try integrityCheck(schema: schema, limit: limit, deadline: deadline)
        return known.isEmpty ? findings : known
    }

    private func compareIndexes(_ schema: String, _ findings: inout [String]) throws {
        for table in try tablesWithIndexes(schema) {
            if let layout = try TableIndexes(table, schema: schema, in: self) {
                findings += try layout.disagreements(in: self)
            } else {
                findings += try integrityCheck(ofTable: table, schema: schema)
            }
            if !findings.isEmpty { return }
        }
    }

    private func tablesWithIndexes(_ schema: String) throws -> [String] {
        let sql = "SELECT DISTINCT tbl_name FROM \(quoteIdentifier(schema)).sqlite_schema WHERE type = 'index'"
        return try query(sql).compactMap { if case .text(let name)? = $0.first { name } else { nil } }
    }

    func integrityCheck(ofTable table: String, schema: String) throws -> [String] {
        try query("PRAGMA \(quoteIdentifier(schema)).integrity_check(\(quoteLiteral(.text(table))))").compactMap {
            if case .text(let line)? = $0.first, line != "ok" { line } else { nil }
        }
    }
}

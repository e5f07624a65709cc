extension Connection {
    /// Finds everything that `integrityCheck` finds, in most cases without looking each row up in each index.
    ///
    /// `quickCheck` verifies the structure and every single row; scans of each table and its indexes then verify that they
    /// agree. SQLite's `integrity_check` covers the tables that scans cannot compare, and runs for the whole database after a
    /// fault, so that the findings are SQLite's own. With `isQuicklySound`, the caller knows that `quickCheck` would find
    /// nothing.
    package func fullCheck(
        schema: String = "main", limit: Int = 100, deadline: Double? = nil, isQuicklySound: Bool = false
    ) throws -> [String] {
        var findings = isQuicklySound ? [] : try quickCheck(schema: schema, limit: limit, deadline: deadline)
        // The scans find tables by their names.
        if try findings.isEmpty && hasUndecodableNames(in: schema) {
            return try integrityCheck(schema: schema, limit: limit, deadline: deadline)
        }
        if findings.isEmpty { findings = try collect(deadline) { try compareIndexes(schema, &$0) } }
        if findings.isEmpty { return [] }
        let known = try integrityCheck(schema: schema, limit: limit, deadline: deadline)
        return known.isEmpty ? findings : known
    }

    private func compareIndexes(_ schema: String, _ findings: inout [String]) throws {
        for table in try tablesWithOrder(schema) {
            if let layout = try TableIndexes(table, schema: schema, in: self) {
                findings += try layout.disagreements(in: self)
            } else {
                findings += try integrityCheck(ofTable: table, schema: schema)
            }
            if !findings.isEmpty { return }
        }
    }

    /// Returns the tables whose key order `quickCheck` does not verify: those with indexes, and those WITHOUT ROWID, which are
    /// indexes themselves.
    private func tablesWithOrder(_ schema: String) throws -> [String] {
        let schema = quoteIdentifier(schema)
        let indexed = try query("SELECT DISTINCT tbl_name FROM \(schema).sqlite_schema WHERE type = 'index'").map {
            $0[0]
        }
        // table_list: schema, name, type, ncol, wr, strict.
        let withoutRowID = try query("PRAGMA \(schema).table_list").filter { $0[4] == .integer(1) }.map { $0[1] }
        return (indexed + withoutRowID.filter { !indexed.contains($0) }).compactMap {
            if case .text(let name) = $0 { name } else { nil }
        }
    }
}

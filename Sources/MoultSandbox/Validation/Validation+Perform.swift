internal import MoultBasics
internal import MoultSQLite
internal import MoultTrust

extension Validation {
    /// Examines the database in this process, with the limits that SQLite itself enforces.
    func perform() -> ValidationReport {
        var report = ValidationReport()
        do { try fill(&report) } catch { report.failure = MoultError(caught: error) }
        return report
    }

    private func fill(_ report: inout ValidationReport) throws {
        // The header is first read without locks and sidecars, because a connection to a database in WAL mode would create
        // sidecars.
        let header = try Connection.openGuarded(path: path, access: .immutable, deadline: Double(processor))
        report.isWAL = try header.header().isWAL
        try header.close()
        report.isOpen = report.isWAL
        if report.isWAL { return }
        let connection = try Connection.openGuarded(
            path: path, access: isWritable ? .readWrite : .immutable, deadline: Double(processor))
        report.isOpen = true
        if wantsIdentity { report.identity = try .init(of: connection) }
        let soundness = try soundness(connection)
        (report.findings, report.notChecked) = (soundness.findings, soundness.notChecked)
        for query in queries { report.answers.append(Self.answer(to: query, connection)) }
        try count(connection, &report.rows)
        try connection.close()
    }

    private func soundness(_ connection: Connection) throws -> Soundness {
        var soundness = Soundness()
        if depth != .header {
            soundness = try connection.soundness(full: depth == .full, limit: maxFindings)
        }
        if wantsForeignKeys, soundness.findings.isEmpty {
            do { soundness.findings = try connection.foreignKeyCheck(limit: maxFindings) } catch {
                guard AppNeed(error) != nil else { throw error }
                let references = try connection.references(limit: maxFindings)
                soundness.findings = references.findings
                soundness.notChecked += references.notChecked
            }
        }
        return soundness
    }

    private static func answer(to query: String, _ connection: Connection) -> ValidationReport.Answer {
        do { return .text(try connection.scalar(query).map(text) ?? "no row") } catch { return .none("\(error)") }
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .integer(let number): String(number)
        case .real(let number): "\(number)"
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }

    private func count(_ connection: Connection, _ rows: inout [ValidationReport.Rows]) throws {
        guard let old, !tables.isEmpty else { return }
        let before = try Connection(path: old, access: .immutable)
        for table in tables {
            let after = try Self.count(table, connection)
            do {
                rows.append(.init(table: table, before: try Self.count(table, before), after: after))
            } catch let error as MoultError where error.code == .databaseCorrupt {
                // The old file may be damaged without a change of its metadata. The new one replaces it.
                rows.append(.init(table: table, before: nil, after: after))
            }
        }
        try before.close()
    }

    private static func count(_ table: String, _ connection: Connection) throws -> Int? {
        let there = try connection.int(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE", [.text(table)])
        return there == 0 ? nil : Int(try connection.int("SELECT count(*) FROM \(quoteIdentifier(table))"))
    }
}

extension ValidationReport.Identity {
    fileprivate init(of connection: Connection) throws {
        let found = try Identity(of: connection)
        self.init(
            applicationID: Int(found.applicationID), userVersion: Int(found.userVersion),
            schema: "sha256:\(try SHA256.digest(of: Array(found.shape.canonicalText.utf8)).hex)")
    }
}

internal import MoultBasics
internal import MoultSQLite

extension Trial {
    /// Runs them in this process; the copy is afterwards what it was.
    func take() -> TrialReport {
        var report = TrialReport()
        do { try fill(&report) } catch { report.failure = MoultError(caught: error) }
        return report
    }

    private func fill(_ report: inout TrialReport) throws {
        var migrations = Migrations(
            try scripts.map { try .init(name: $0.name, number: $0.number, file: $0.file) })
        // Whether rows may go is judged by whoever asked.
        migrations.deadline = min(migrations.deadline, Double(deadline))
        migrations.mayShrink = { _, _, _ in true }
        let connection = try Connection(path: copy, access: .readWrite)
        let before = try RowCounts(of: connection).tables
        try migrations.begin(on: connection)
        let found = try Identity(of: connection)
        (report.applicationID, report.userVersion) = (Int(found.applicationID), Int(found.userVersion))
        (report.before, report.after) = (before, try RowCounts(of: connection).tables)
        let template = try Connection(path: template, access: .immutable)
        report.lack = try found.shape.lacks(of: SchemaShape(of: template)).first
        try template.close()
        let findings = try depth == .full ? connection.fullCheck() : connection.quickCheck()
        report.finding = findings.first
        try connection.execute("ROLLBACK")
        try connection.close()
    }
}

internal import MoultBasics
internal import MoultRows
internal import MoultSQLite

extension MigrationRun {
    /// Runs the migrations in this process; the copy is unchanged afterwards.
    func perform() -> TrialReport {
        var report = TrialReport()
        do { try fill(&report) } catch {
            let isDamage = error.sqlite.map {
                $0.path == copy && [.corrupt, .notADatabase].contains($0.resultCode.primary)
            }
            report.failure = isDamage == true ? damaged(error.sqlite?.message) : MoultError(caught: error)
        }
        return report
    }

    private func fill(_ report: inout TrialReport) throws {
        var migrations = Migrations(
            try scripts.map { try .init(name: $0.name, number: $0.number, file: $0.file) })
        migrations.deadline = min(migrations.deadline, Double(processor))
        // The caller determines whether rows may be lost.
        migrations.mayShrink = { _, _, _ in true }
        migrations.place = place
        let connection = try Connection(path: copy, access: .readWrite)
        let before = try connection.rowCounts()
        do { try migrations.begin(on: connection) } catch { throw try blaming(error, connection) }
        let found = try Identity(of: connection)
        (report.applicationID, report.userVersion) = (Int(found.applicationID), Int(found.userVersion))
        (report.before, report.after) = (before, try connection.rowCounts())
        let template = try Connection(path: template, access: .immutable)
        report.lack = try SchemaShape.ofContent(connection).lacks(of: .ofContent(template)).first
        try template.close()
        let after = try soundness(connection)
        report.notChecked = after.notChecked
        try connection.execute("ROLLBACK")
        if !after.findings.isEmpty { try compare(after.findings, with: soundness(connection), &report) }
        try connection.close()
    }

    /// The maximum number of findings. It is high, because an old violation that was cut off by the limit would count as new.
    private static let maxFindings = 10_000

    private func soundness(_ connection: Connection) throws -> Soundness {
        try connection.soundness(full: depth == .full, limit: Self.maxFindings)
    }

    /// Reports the first finding that the migrations added, and throws if the database was damaged before them.
    private func compare(_ after: [String], with before: Soundness, _ report: inout TrialReport) throws {
        if let damage = before.damage.first { throw damaged(damage) }
        report.finding = Soundness.added(after, since: before.findings).first
    }

    private func damaged(_ why: String?) -> MoultError {
        MoultError(
            .databaseCorrupt, .refused, what: "the user database \(name) is damaged", why: why,
            now:
                "Nothing was changed. Restore the database from a backup, or set it aside and salvage its readable rows: "
                + "\(moult: "reset", name, "--set-user-data-aside")")
    }

    /// Returns the error of a migration, with a remark if rows already violated a constraint before it.
    private func blaming(_ error: any Error, _ connection: Connection) throws -> any Error {
        guard error.sqlite?.resultCode.primary == .constraint, var explained = error as? MoultError else {
            return error
        }
        let before = try soundness(connection).findings
        guard let first = before.first else { return error }
        explained.why =
            "\(explained.why ?? ""); before the migration, the database already had \(before.count) "
            + "\(before.count == 1 ? "row that breaks" : "rows that break") the constraints of its own tables: \(first)"
        explained.now =
            "Nothing was changed. Correct those rows in the app, or ask the publisher for a migration that handles such rows, "
            + "then try again."
        return explained
    }
}

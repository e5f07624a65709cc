package import MoultBasics
internal import MoultFiles
internal import MoultRows
internal import MoultSQLite

/// Untrusted migrations, run on a copy of a user database and rolled back.
package struct MigrationRun: Sendable, Equatable {
    package struct Script: Sendable, Equatable {
        package var name: String
        /// The `user_version` that the script sets.
        package var number: Int
        package var file: String

        package init(name: String, number: Int, file: String) {
            (self.name, self.number, self.file) = (name, number, file)
        }
    }

    /// The database's name in errors.
    package var name: String
    /// The path at which users know the database.
    package var place: String
    /// The copy, in a separate directory.
    package var copy: String
    /// A database with the schema that the migrations should produce.
    package var template: String
    package var scripts: [Script]
    package var depth: Validation.Depth
    /// The limit on processor time for the whole run, in seconds; the statements themselves may have a lower limit.
    package var processor = 3600

    package init(
        name: String, place: String, copy: String, template: String, scripts: [Script], depth: Validation.Depth
    ) {
        (self.name, self.place, self.copy) = (name, place, copy)
        (self.template, self.scripts, self.depth) = (template, scripts, depth)
    }
}

/// The result of running migrations.
package struct TrialReport: Sendable {
    /// The number of rows in each table before and after.
    package var before: [SQLName: Int] = [:]
    package var after: [SQLName: Int] = [:]
    package var applicationID = 0
    package var userVersion = 0
    /// The first part of the template that the database lacks.
    package var lack: String?
    /// The first fault that the migrations added.
    package var finding: String?
    /// The parts that could not be checked, with the reason: they need something that only the app has.
    package var notChecked: [String] = []
    /// Why the result is incomplete.
    package var failure: MoultError?
}

extension TrialReport {
    /// Throws if the migrations failed or lost rows, or if the migrated database differs from the release's template: then the
    /// error is made by `misfit`.
    package func requireFit(
        path: String, userVersion: Int?, applicationID: Int?, mayShrink: (String, Int, Int) -> Bool,
        misfit: (String) -> MoultError
    ) throws {
        if let loss = after.lossOfRows(since: before, mayShrink: mayShrink) {
            throw Migrations.loses(loss, path: path)
        }
        if let failure { throw failure }
        if let fault = fault(userVersion: userVersion, applicationID: applicationID) { throw misfit(fault) }
    }

    /// Returns how the migrated database differs from the release's template; nil if it does not.
    private func fault(userVersion wanted: Int?, applicationID: Int?) -> String? {
        if let wanted, wanted != userVersion {
            return "they end at user_version \(userVersion), and the database of the release has \(wanted)"
        }
        if let applicationID, applicationID != self.applicationID {
            return "application_id is \(self.applicationID), and the database of the release has \(applicationID)"
        }
        return lack ?? finding
    }
}

extension MigrationRun: WorkerRequest {
    static let verb = "try-2"

    init(_ fields: Fields) throws {
        guard let depth = try fields.word("depth", Validation.Depth.self) else {
            throw fields.fail("depth", "is missing")
        }
        self.init(
            name: try fields.string("name"), place: try fields.string("place"), copy: try fields.string("copy"),
            template: try fields.string("template"),
            scripts: try fields.objects("scripts").map { fields in
                try Script(
                    name: fields.string("name"), number: fields.integer("number"), file: fields.string("file"))
            }, depth: depth)
        processor = try fields.count("processor")
    }

    var json: JSON {
        .record([
            "name": name, "place": place, "copy": copy, "template": template,
            "scripts": scripts.map { JSON.record(["name": $0.name, "number": $0.number, "file": $0.file]) },
            "depth": depth.rawValue, "processor": processor,
        ])
    }

    var timeoutAdvice: Advice { advice }

    func protection(scratch: String) throws -> Guard {
        let size = try Files.factsThroughLinks(copy)?.size ?? 0
        return Guard(
            .examiner, reading: .only([template] + scripts.map(\.file)), writing: [scratch, Files.directory(of: copy)],
            limits: .init(memory: Validator.memory, processor: processor + 5, fileSize: max(1 << 30, 4 * size)))
    }

    func mapping(_ path: (String) -> String) -> MigrationRun {
        var mapped = self
        (mapped.copy, mapped.template) = (path(copy), path(template))
        mapped.scripts = scripts.map { Script(name: $0.name, number: $0.number, file: path($0.file)) }
        return mapped
    }

    static func json(of answer: TrialReport) -> JSON {
        func counts(_ counts: [SQLName: Int]) -> JSON {
            .array(counts.map { JSON.record(["table": $0.key.text, "rows": $0.value]) })
        }
        return .record([
            "before": counts(answer.before), "after": counts(answer.after), "applicationID": answer.applicationID,
            "userVersion": answer.userVersion, "lack": answer.lack, "finding": answer.finding,
            "notChecked": answer.notChecked, "failure": answer.failure?.report,
        ])
    }

    static func answer(_ fields: Fields) throws -> TrialReport {
        func counts(_ name: String) throws -> [SQLName: Int] {
            let pairs = try fields.objects(name).map { (SQLName(try $0.string("table")), try $0.count("rows")) }
            return Dictionary(pairs) { $1 }
        }
        var report = TrialReport()
        report.before = try counts("before")
        report.after = try counts("after")
        report.applicationID = try fields.integer("applicationID")
        report.userVersion = try fields.integer("userVersion")
        report.lack = try fields.optionalString("lack")
        report.finding = try fields.optionalString("finding")
        report.notChecked = try fields.optionalStrings("notChecked") ?? []
        report.failure = try fields.optionalObject("failure").map { try MoultError(report: $0) }
        return report
    }

    var failure: String { "the migrations of \(name) cannot be tested" }
    var work: String { "the trial" }
    var diskLimit: String { "four times the database's size" }
    var advice: Advice { "Nothing was changed. The publisher of the release must fix the migrations." }
}

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

internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
package import MoultStore
package import StepKit

/// Computes for a plan what its migrations will change or drop, by running them on a copy of the user's database.
package struct MigrationForecast {
    let layout: StoreLayout
    let release: Manifest
    let installed: Manifest?
    /// Whether to read the bundle and the databases even if they are large (`plan --deep`).
    let isDeep: Bool

    package init(layout: StoreLayout, release: Manifest, installed: Manifest?, isDeep: Bool) {
        (self.layout, self.release, self.installed, self.isDeep) = (layout, release, installed, isDeep)
    }

    /// Larger bundles and databases are left to `--deep` and to the update itself.
    static let largest = 32 << 20

    package func fill(_ plan: inout Plan) throws {
        guard let bundle = plan.bundle, bundle.missing == 0, isDeep || bundle.size <= Self.largest else { return }
        for index in plan.effects.indices {
            guard case .migrate(let path, let members, let from, let to, _) = plan.effects[index].change,
                let database = plan.effects[index].database.flatMap(release.database)
            else { continue }
            let size = try Files.factsThroughLinks(layout.file(path))?.size ?? 0
            guard isDeep || size <= Self.largest else { continue }
            let origin = try template(of: database, plan)
            let (rows, items) = try Files.withScratchDirectory { scratch in
                let report = try runTrial(database, path, members, bundle.path, scratch)
                let template = origin ?? Staging.unpacked(database.member, in: scratch)
                return (
                    report.losses.sorted { $0.key < $1.key }.map { RowFate(table: $0.key.text, kept: $0.value) },
                    try Migration.ofApp(report.lostItems, template: template)
                )
            }
            plan.effects[index].change = .migrate(path: path, members: members, from: from, to: to, rows: rows)
            guard !items.isEmpty else { continue }
            let names = items.map { "\($0.kind) \($0.name)" }.joined(separator: ", ")
            plan.warnings.append(
                "\(path): the migrations drop or change schema objects of the app: \(names); the old database is kept in quarantine"
            )
        }
    }

    /// Returns the file from which the database was created; nil if it does not come from a release.
    private func template(of database: Database, _ plan: Plan) throws -> String? {
        guard let from = plan.from, let before = installed?.database(database.name) else { return nil }
        let path = "\(layout.generation(from.generation))/\(before.member)"
        return try Files.facts(path) == nil ? nil : path
    }

    private func runTrial(
        _ database: Database, _ path: String, _ members: [String], _ bundle: String, _ scratch: String
    ) throws -> TrialReport {
        let place: @Sendable (String) throws -> String = { member in
            var directory = Staging.unpacked(in: scratch)
            try Files.ensureDirectory(directory, mode: 0o700)
            for part in member.pathParts().dropLast() {
                directory += "/\(part)"
                try Files.ensureDirectory(directory, mode: 0o700)
            }
            return Staging.unpacked(member, in: scratch)
        }
        try Unpacker(
            place: place, release: release, bundle: bundle, members: members + [database.member], progress: { _ in }
        ).unpack()
        try Files.makeDirectory("\(scratch)/trial", mode: 0o700)
        let copy = "\(scratch)/trial/\(Files.name(of: path))"
        try NonInvasiveReader.copy(layout.file(path), to: copy)
        var trial = MigrationRun(
            name: database.name, place: layout.file(path), copy: copy, template: try place(database.member),
            scripts: try database.migrations.filter { members.contains($0.member) }.map {
                .init(name: $0.member, number: $0.number, file: try place($0.member))
            }, depth: .quick)
        trial.countsLosses = true
        let report = try Validator.available().try(trial, scratch: "\(scratch)/exam") {}
        // A release with a failing migration would be refused when it is applied, so the plan fails already.
        let wanted = database.identity
        try report.requireFit(
            path: layout.file(path), userVersion: wanted.userVersion, applicationID: wanted.applicationID,
            mayShrink: { release.mayShrink(database.name, table: $0, from: $1, to: $2) },
            misfit: { release.migrationMisfit($0, of: database) })
        return report
    }
}

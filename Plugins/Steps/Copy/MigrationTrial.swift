internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
internal import StepKit

/// Runs the migrations on a copy of the user's database first, so that they fail before anything is changed. The trial is
/// rolled back, and the copy with the original content stays until the update has ended.
struct MigrationTrial {
    let database: Database
    let context: PrepareContext

    func run(_ members: [String], path: String) throws {
        // Recovery needs the scripts again if it completes the update after a crash.
        try makeDurable(members)
        let directory = "\(context.staging)/before"
        try Files.ensureDirectory(directory, mode: 0o700)
        let copy = "\(directory)/\(path)"
        try context.progress(.init("test the migrations of \(database.name)", done: 0, total: 0))
        try NonInvasiveReader.copy(context.plan.store.path(path), to: copy)
        var trial = MigrationRun(
            name: database.name, place: context.plan.store.path(path), copy: copy,
            template: try WritableStaging(context: context).pristine(database.member),
            scripts: database.migrations.filter { members.contains($0.member) }.map {
                .init(name: $0.member, number: $0.number, file: context.unpacked($0.member))
            }, depth: context.plan.demandedCheck(of: database) == .full ? .full : .quick)
        let time = context.plan.policy.checkTime
        // A publisher limits the time of a trial. A store has no limit for migrations of its own, because they must run.
        if time.isTrial, time.fixed != nil { trial.processor = time.seconds(for: 0) }
        let report = try Validator.available().try(trial, scratch: "\(context.staging)/trial") {
            try context.progress(.init("test the migrations of \(database.name)", done: 0, total: 0))
        }
        try verify(report, path: path)
    }

    /// Throws unless the result of the migrations matches the release's template; additional tables or indexes of an app are
    /// allowed.
    private func verify(_ report: TrialReport, path: String) throws {
        let (release, wanted) = (context.plan.release, database.identity)
        try report.requireFit(
            path: context.plan.store.path(path), userVersion: wanted.userVersion, applicationID: wanted.applicationID,
            mayShrink: { release.mayShrink(database.name, table: $0, from: $1, to: $2) },
            misfit: { release.migrationMisfit($0, of: database) })
    }

    private func makeDurable(_ members: [String]) throws {
        var directories: Set<String> = []
        for member in members {
            try Files.seal(context.unpacked(member), mode: 0o600)
            var directory = Files.directory(of: member)
            while directory != "." {
                directories.insert(context.unpacked(directory))
                directory = Files.directory(of: directory)
            }
        }
        for directory in directories { try Files.syncDirectory(directory) }
        try Files.syncDirectory(context.unpacked(""))
    }
}

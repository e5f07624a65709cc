internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultSandbox
internal import MoultTrust
internal import StepKit

/// Creates the staged file for a writable database: a copy of the pristine file, with the release marker for a shared database.
struct WritableStaging {
    let context: PrepareContext

    /// A file that SQLite copies from need not be synced, because recovery stages it again; one that gets its place must.
    func stage(_ name: String?, as path: String, isDurable: Bool) throws {
        guard let database = name.flatMap(context.plan.release.database) else { return }
        let waiting = context.waiting(path)
        if let restored = context.plan.restoring {
            // Recovery stages the content again, when the copy that the command was given is gone.
            let kept = Staging.restored(in: context.staging)
            if restored != kept {
                try Files.copy(restored, to: kept, mode: 0o600)
                try Files.seal(kept, mode: 0o600)
            }
            try Files.copy(kept, to: waiting, mode: 0o644)
            if isDurable { try Files.seal(waiting, mode: 0o644) }
            return
        }
        let pristine = try pristine(database.member)
        if let kind = try Files.factsThroughLinks(pristine)?.kind, kind != .file {
            throw changed(pristine, "it is not a regular file")
        }
        try Files.copy(pristine, to: waiting, mode: 0o644)
        // A file that was just unpacked is already verified; a file in a generation may have been changed since.
        if !pristine.hasPrefix(context.stagedGeneration), try SHA256.digest(ofFileAt: waiting).hex != database.sha256 {
            throw changed(pristine, "its SHA-256 does not match the manifest")
        }
        if database.kind.isReplaced { try mark(waiting, database) }
        if isDurable { try Files.seal(waiting, mode: 0o644) }
    }

    private func changed(_ pristine: String, _ why: String) -> MoultError {
        MoultError(
            .userDatabase, what: "\(pristine) was changed after it was installed", why: why,
            now: "Install release \(context.plan.release.version) again from its bundle: \(moult: "apply", "RELEASE")")
    }

    private func mark(_ waiting: String, _ database: Database) throws {
        let connection = try Connection(path: waiting, access: .readWrite)
        try connection.execute("PRAGMA synchronous = OFF")
        if case .text(let name)? = try connection.scalar(ReleaseMarker.foreign) {
            throw MoultError(
                .wrongContent, .refused, what: "the database \(database.name) has a table or view named \(name)",
                why: "moult stores its own records in a table with that name", now: "Rename the table or view.")
        }
        try connection.transaction(.immediate) {
            try connection.execute(ReleaseMarker.create)
            let release = context.plan.release
            _ = try connection.query(
                ReleaseMarker.insert,
                [
                    .text(release.version.description), .integer(Int64(release.sequence)), .text(database.sha256),
                    .text(context.transaction),
                ])
        }
        try connection.close()
    }

    /// Returns the pristine file, from the staged generation or from a kept one.
    func pristine(_ member: String) throws -> String {
        let staged = "\(context.stagedGeneration)/\(member)"
        if try Files.facts(staged) != nil { return staged }
        return context.plan.store.path(ofMember: member, in: context.plan.generation)
    }
}

extension WritableStaging {
    /// Runs the migrations on a copy of the user's database first, so that they fail before anything is changed. The trial is
    /// rolled back, and the copy with the original content stays until the update has ended.
    func tryMigrations(_ members: [String], of database: Database, path: String) throws {
        // Recovery needs the scripts again if it completes the update after a crash.
        try makeDurable(members)
        let directory = "\(context.staging)/before"
        try Files.ensureDirectory(directory, mode: 0o700)
        let copy = "\(directory)/\(path)"
        try context.progress(.init("test the migrations of \(database.name)", done: 0, total: 0))
        try NonInvasiveReader.copy(context.plan.store.path(path), to: copy)
        var trial = MigrationRun(
            name: database.name, place: context.plan.store.path(path), copy: copy,
            template: try pristine(database.member),
            scripts: database.migrations.filter { members.contains($0.member) }.map {
                .init(name: $0.member, number: $0.number, file: context.unpacked($0.member))
            }, depth: context.plan.demandedCheck(of: database) == .full ? .full : .quick)
        let time = context.plan.policy.checkTime
        // A publisher limits the time of a trial. A store has no limit for migrations of its own, because they must run.
        if time.isTrial, time.fixed != nil { trial.processor = time.seconds(for: 0) }
        let report = try Validator.available().try(trial, scratch: "\(context.staging)/trial") {
            try context.progress(.init("test the migrations of \(database.name)", done: 0, total: 0))
        }
        try verify(report, of: database, path: path)
    }

    /// Throws unless the result of the migrations matches the release's template; additional tables or indexes of an app are
    /// allowed.
    private func verify(_ report: TrialReport, of database: Database, path: String) throws {
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

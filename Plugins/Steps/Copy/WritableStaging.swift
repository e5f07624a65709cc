internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
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
            Template.code, what: "\(pristine) was changed after it was installed", why: why,
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
            _ = try connection.query(
                ReleaseMarker.insert,
                [
                    .text(context.plan.release.version.description), .integer(Int64(context.plan.release.sequence)),
                    .text(database.sha256), .text(context.transaction),
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

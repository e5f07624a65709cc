internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Makes the file that will become a shared database: a copy of the pristine one, with the release's marker in it.
struct SharedStaging {
    let context: PrepareContext

    func stage(_ name: String?, as path: String) throws {
        guard let database = name.flatMap(context.plan.release.database) else { return }
        let waiting = context.waiting(path)
        try Files.copy(pristine(database.member), to: waiting, mode: 0o644)
        let connection = try Connection(path: waiting, access: .readWrite)
        try connection.transaction(.immediate) {
            try connection.execute(ReleaseMarker.create)
            _ = try connection.query(
                ReleaseMarker.insert,
                [
                    .text(context.plan.release.version.description), .integer(Int64(context.plan.release.sequence)),
                    .text(database.sha256),
                ])
        }
        try connection.close()
        // SQLite has synced what it wrote; the copy before it was not.
        try Files.seal(waiting, mode: 0o644)
    }

    /// From the staged generation, or from the kept one that a rollback goes to.
    private func pristine(_ member: String) throws -> String {
        let staged = "\(context.stagedGeneration)/\(member)"
        if try Files.facts(staged) != nil { return staged }
        return context.plan.store.path(ofMember: member, in: context.plan.generation)
    }
}

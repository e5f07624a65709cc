internal import MoultBasics
internal import MoultSQLite
internal import StepKit

/// Checks whether the store can return to a kept generation.
struct Rollback {
    let context: PlanContext

    var findings: [String] {
        get throws {
            try context.store.proveSeal(of: context.generation)
            for database in context.release.databases where database.kind.isMigrated { try requireReadable(database) }
            let from = context.installed.map { "\($0.version)" } ?? "nothing"
            return ["rollback from \(from) to \(context.release.version), with its verified files"]
        }
    }

    /// Throws if the app of the older release could not read the user's data.
    private func requireReadable(_ database: Database) throws {
        guard let known = database.knownUserVersion, case .file = try context.store.look(database.path) else { return }
        let path = context.store.path(database.path)
        let version: Int64
        do { version = try NonInvasiveReader.into(path) { try $0.int("PRAGMA user_version") } } catch {
            // A file that is not a database has no version, so it does not prevent the rollback.
            if (error as? MoultError)?.outcome == .busy { throw error }
            return
        }
        if version > known {
            throw MoultError.refusal(
                what: "\(path) is too new for release \(context.release.version)",
                why: "the user_version of the database is \(version), and the release supports at most \(known)",
                now: "Keep the installed release, or apply a newer one.")
        }
    }
}

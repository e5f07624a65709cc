internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// Restores a writable database after an update, a failure or a crash: its journal mode, and anything that SQLite would
/// otherwise repair when the app next opens the file.
///
/// A journal of an interrupted transaction is rolled back. An obsolete journal is removed as well: SQLite would leave it, and
/// it would prevent the next exchange.
struct JournalModeRestore {
    let path: String
    /// Whether the database was in WAL mode, which draining ends.
    var wasWAL = false

    func restore() throws {
        guard try Files.factsThroughLinks(path)?.kind == .file else { return }
        guard try wasWAL || Sidecars.of(path).journal != nil else { return }
        do { try open() } catch let error as MoultError {
            // A process that has the database open does all of this itself; damage is reported by the code that reads the
            // database.
            let others: [ResultCode] = [.busy, .locked, .corrupt, .notADatabase]
            guard let code = error.sqlite?.resultCode, others.contains(code.primary) else { throw error }
        }
    }

    /// Restores all databases that a plan drains, replaces or migrates; `wal` lists those that were in WAL mode.
    ///
    /// A file that replaces one that was set aside has its journal mode already. If the update was not installed, the old file is
    /// in place, and gets its mode back.
    static func restore(_ plan: Plan, _ layout: StoreLayout, wal: Set<String>, isInstalled: Bool) throws {
        for effect in plan.effects {
            for path in effect.writtenPaths {
                // A file that is set aside without being drained stays unchanged.
                if effect.setsAside, isInstalled || !wal.contains(path) { continue }
                // A file that became a generation, or a link to one, no longer belongs to the app.
                guard try Files.target(ofLink: layout.file(path)).map(StoreLayout.isSealed) != true else { continue }
                let wasWAL = wal.contains(path) || effect.drainedPath.map(wal.contains) == true
                try JournalModeRestore(path: layout.file(path), wasWAL: wasWAL).restore()
            }
        }
    }

    private func open() throws {
        let connection = try Connection(path: path, access: .readWrite, busyTimeout: 0)
        // The first read rolls back an interrupted transaction.
        _ = try connection.int("SELECT count(*) FROM sqlite_schema")
        let isWAL = try connection.header().isWAL
        if try Sidecars.of(path).journal != nil {
            // Only when leaving PERSIST does SQLite remove a journal left by an earlier connection.
            for mode in ["delete", "persist", "delete"] { try set(mode, connection) }
        }
        if isWAL || wasWAL { try set("wal", connection) }
        try connection.close()
    }

    /// Sets the journal mode, and checks the result: SQLite does not always report an error if it cannot change the mode.
    private func set(_ mode: String, _ connection: Connection) throws {
        guard try connection.scalar("PRAGMA journal_mode = \(mode)") != .text(mode),
            try OpenFiles.holders(of: [path]).isEmpty
        else { return }
        throw MoultError(
            .inUse, what: "the journal mode of \(path) cannot be set to \(mode)", why: "SQLite did not change it",
            now: "Check that the disk works and has free space, then run: moult recover")
    }
}

extension Effect {
    /// The paths of databases that the effect writes to with SQLite, or drains.
    var writtenPaths: [String] {
        let traits = change.traits
        return traits.handling == .written || traits.handling == .drained ? traits.paths : []
    }

    /// The path of a database that the effect drains, so that the app's journal mode must be restored.
    var drainedPath: String? {
        let traits = change.traits
        return traits.handling == .drained ? traits.paths.first : nil
    }

    fileprivate var setsAside: Bool { if case .quarantine = change { true } else { false } }
}

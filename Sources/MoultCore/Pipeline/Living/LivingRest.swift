internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Brings a living database to rest after a crash or a failure: what SQLite would do at the app's next open is done now.
///
/// A journal that was left in the middle of a transaction is rolled back. One that counts for nothing any more goes, too:
/// SQLite would leave it, and it would keep the next exchange from happening.
struct LivingRest {
    let path: String
    /// Whether the app had chosen WAL mode, which an exchange takes away for its moment.
    var wasWAL = false

    func restore() throws {
        guard try Files.facts(path)?.kind == .file else { return }
        guard try wasWAL || Sidecars.of(path).journal != nil else { return }
        do { try open() } catch let error as MoultError {
            // Who has it open does all of this himself, and what cannot be read is told to those who read it.
            let others: [ResultCode] = [.busy, .locked, .corrupt, .notADatabase]
            guard let code = error.sqlite?.resultCode, others.contains(code.primary) else { throw error }
        }
    }

    /// All files to which apps write and that a plan replaces or migrates; `wal` are those that an exchange has drained.
    static func restore(_ plan: Plan, _ layout: StoreLayout, wal: Set<String>) throws {
        for effect in plan.effects {
            switch effect.change {
            case .replace(let path, _, _, _, _), .migrate(let path, _, _, _):
                try LivingRest(path: layout.file(path), wasWAL: wal.contains(path)).restore()
            default: break
            }
        }
    }

    private func open() throws {
        let connection = try Connection(path: path, access: .readWrite, busyTimeout: 0)
        // The first read rolls back what is to be rolled back.
        _ = try connection.int("SELECT count(*) FROM sqlite_schema")
        let isWAL = try connection.header().isWAL
        if try Sidecars.of(path).journal != nil {
            // Only from PERSIST does SQLite remove a journal that an earlier connection left behind.
            for mode in ["delete", "persist", "delete"] { try set(mode, connection) }
        }
        if isWAL || wasWAL { try set("wal", connection) }
        try connection.close()
    }

    /// SQLite need not call it an error when the mode stays as it was.
    private func set(_ mode: String, _ connection: Connection) throws {
        guard try connection.scalar("PRAGMA journal_mode = \(mode)") != .text(mode),
            try OpenFiles.holders(of: [path]).isEmpty
        else { return }
        throw MoultError(
            .inUse, what: "the journal mode of \(path) cannot be made \(mode)", why: "SQLite leaves it as it is",
            now: "See whether the disk is sound and has room, then run: moult recover")
    }
}

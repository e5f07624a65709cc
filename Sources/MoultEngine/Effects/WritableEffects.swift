internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// Takes the effects on writable databases through their stages: all databases are held before any is changed.
final class WritableEffects {
    let transaction: Transaction
    let plan: Plan
    let release: Manifest
    let installed: Manifest?
    /// The schema versions of the databases at the decision; nil before.
    private var decided: [String: UInt64]?
    var built: [any WritableEffect]?
    private var isHeld = false
    /// The caches that stay as they are, because other processes are using them.
    private(set) var postponed: [Plan.Pending] = []
    /// Whether a commit was made that cannot be undone: from then on the update can only be finished.
    private(set) var isIrrevocable = false

    init(transaction: Transaction, plan: Plan, decided: [String: UInt64]?, installed: Manifest?, release: Manifest) {
        (self.transaction, self.plan, self.decided) = (transaction, plan, decided)
        (self.installed, self.release) = (installed, release)
    }

    // MARK: the stages

    /// Holds every database, before the decision or when an update is recovered. `stop` is polled while waiting for other
    /// processes.
    func hold(stop: () throws -> Void = {}) throws {
        // A power failure may leave a SQLite journal next to a file, and recovery looks for it only if the transaction's
        // journal says that a change was started.
        let effects = try effects().filter { try !isDone($0.effect) }
        if !effects.isEmpty { try transaction.journal.sync() }
        isHeld = true
        for effect in effects {
            if !(effect is Aside) { try requireOpenable(effect.place) }
            try SoleName.require(effect.place)
        }
        for effect in effects { try ifFree(effect) { try effect.examine() } }
        // Migrations and row restores may wait a long time for other processes' transactions, so they go first, before the
        // databases of the other effects are locked.
        for effect in effects where effect.waitsForOthers { try effect.hold() }
        // A cache that is not free must not keep the locks of other databases waiting.
        try acquire(effects.filter(isCache) + effects.filter { !isCache($0) }, stop)
        for effect in effects where !effect.waitsForOthers { try ifFree(effect) { try effect.hold() } }
        for effect in effects where !isPostponed(effect.effect.database) { try effect.copyPages() }
    }

    /// Takes a cache through a stage, unless another process is using it: a cache can be recreated at any time, so it does not block
    /// an update.
    private func ifFree(_ effect: any WritableEffect, _ stage: () throws -> Void) throws {
        if isPostponed(effect.effect.database) { return }
        do { try stage() } catch let error as MoultError where error.outcome == .busy && isCache(effect) {
            try effect.release()
            postponed.append(Plan.Pending(database: effect.effect.database ?? "", why: error.why ?? error.what))
        }
    }

    /// Whether the effect only replaces the content of a cache that does not match the release.
    private func isCache(_ effect: any WritableEffect) -> Bool {
        guard let name = effect.effect.database, release.database(name)?.kind.isDisposable == true else { return false }
        return switch effect.effect.change {
        case .replace(let new): new.reason == .unfitCache
        case .quarantine(_, _, let reason): reason == .unfitCache
        default: false
        }
    }

    func isPostponed(_ database: String?) -> Bool { postponed.contains { $0.database == database } }

    private func acquire(_ effects: [any WritableEffect], _ stop: () throws -> Void) throws {
        let deadline = ContinuousClock.now + .seconds(transaction.patience)
        while true {
            do { return try effects.forEach { effect in try ifFree(effect) { try effect.acquire() } } } catch let error
                as MoultError
                where error.outcome == .busy && ContinuousClock.now < deadline
            {
                // Another process is using one of the databases briefly. All of them are released, so that the process can end
                // its transaction.
                for effect in effects.reversed() { try effect.unlock() }
                try stop()
            }
        }
    }

    /// Throws if the kernel would not let this process open the sidecars of another user's database, as in a sticky directory.
    private func requireOpenable(_ path: String) throws {
        guard let owner = try Files.protectedOwner(path), try isWAL(path) || !Sidecars.of(path).isEmpty else { return }
        let (user, directory) = (Files.userName(owner), Files.directory(of: path))
        throw MoultError(
            .inUse, .refused, what: "this user cannot update \(path), which belongs to user \(user)",
            why: "\(directory) is sticky, and the kernel lets only \(user) open the -wal there (fs.protected_regular)",
            now: "Nothing was changed. Run the command as user \(user), who must also own the store.")
    }

    private func isWAL(_ place: String) throws -> Bool {
        // A file that this user may not read is set aside unchanged, so its journal mode does not matter.
        try Files.isReadable(place) && Connection.isWAL(ofFileAt: place)
    }

    /// Returns the schema versions that the decision records for recovery.
    func schemas() throws -> [String: UInt64] {
        let schemas = try effects().reduce(into: decided ?? [:]) { $0.merge(try $1.facts) { $1 } }
        decided = schemas
        return schemas
    }

    /// Returns the fate of the rows of each database.
    func fates() throws -> [RowFate] {
        try effects().flatMap { effect in
            effect.fates.map {
                var fate = $0
                fate.database = effect.effect.database
                return fate
            }
        }
    }

    func perform(_ effect: Effect) throws {
        if !isPostponed(effect.database) { try find(effect)?.perform() }
    }
    func revert(_ effect: Effect) throws { try find(effect)?.revert() }

    /// Commits everything. As far as possible, operations that can fail for lack of space or a lock come before the first
    /// commit.
    func finish() throws {
        let effects = try effects()
        for effect in effects { try effect.stage() }
        for effect in effects {
            do { if try effect.commit() { isIrrevocable = true } } catch {
                // If it is unknown whether the commit took effect, finishing the update is the only safe choice.
                isIrrevocable = isIrrevocable || ((try? effect.isCommitted(despite: error)) ?? true)
                throw error
            }
        }
        for effect in effects { try effect.finish() }
        try syncNames(effects)
    }

    /// Releases everything, and removes the sets in quarantine that are not needed.
    func releaseAll() throws {
        guard isHeld else { return }
        for effect in try effects().reversed() { try effect.release() }
        try Displacement.removeNeedlessSets(transaction, plan)
    }

    /// Syncs the directories of the databases. SQLite does not sync the removal of its journal, so after a power failure the
    /// journal could reappear and be rolled back.
    private func syncNames(_ effects: [any WritableEffect]) throws {
        for directory in Set(effects.map { Files.directory(of: $0.place) }).sorted() {
            try Files.syncDirectory(directory)
        }
    }

    // MARK: recovery

    /// Returns whether the effect was already applied, and recovery must not apply it again. All other changes may be applied
    /// again.
    func isDone(_ effect: Effect) throws -> Bool {
        switch effect.change {
        case .replace(let new): try isReplaced(effect, new)
        case .migrate(let path, _, _, let target, _): try Migration.isDone(place(path), target: target)
        default: false
        }
    }

    /// Returns whether the database has the new content. Before the decision nothing is replaced, whatever a file's marker says: a
    /// file that is taken over may have had the same content before.
    func isReplaced(_ effect: Effect, _ new: Replacement) throws -> Bool {
        let place = place(new.path)
        guard let database = effect.database.flatMap(release.database), let decided,
            try Files.factsThroughLinks(place) != nil, try isDatabase(place)
        else { return false }
        if isPostponed(database.name) { return true }
        let connection = try Connection(path: place, access: .readWrite)
        // Every replacement increases the schema version.
        let isChanged = try decided[new.path].map { try $0 != Rewrite.schemaVersion(connection) }
        let hasMarker =
            try !database.kind.isReplaced || new.reason == .restored
            || connection.int(ReleaseMarker.isThere) == 1
                && connection.scalar(ReleaseMarker.digest) == .text(database.sha256)
        try connection.close()
        return hasMarker && isChanged ?? database.kind.isReplaced
    }

    private func isDatabase(_ place: String) throws -> Bool {
        do {
            _ = try NonInvasiveReader.into(place) { try $0.int("PRAGMA schema_version") }
            return true
        } catch let error as MoultError where error.code == .databaseCorrupt { return false }
    }

    /// Throws if a commit was made that cannot be undone. Called before an undo after a crash.
    func requireRevocable() throws {
        // Only these changes are committed by SQLite; all others are undone by renaming.
        for effect in plan.effects where effect.change.traits.handling == .written {
            let isCommitted =
                switch effect.change {
                case .migrate(let path, _, _, let target, _): try Migration.isDone(place(path), target: target)
                case .replace(let new): try isReplaced(effect, new)
                case .restoreRows: try rowRestore(effect)?.isDone() ?? false
                // A change that this list does not have counts as committed, so that it is never undone by mistake.
                default: true
                }
            guard isCommitted else { continue }
            throw MoultError(
                .stuck, .refused, what: "the update to \(release.version) can no longer be undone",
                why: "\(effect.database ?? "a database") is already updated, and apps may have written to it since",
                now: "Finish the update: moult recover. Then roll back: moult rollback")
        }
    }

    private func find(_ effect: Effect) throws -> (any WritableEffect)? {
        try effects().first { $0.effect == effect }
    }

    func place(_ path: String) -> String { transaction.layout.file(path) }
}

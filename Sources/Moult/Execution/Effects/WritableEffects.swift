internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Takes the effects on writable databases through their stages: all databases are held before any is changed.
final class WritableEffects {
    let transaction: Transaction
    let plan: Plan
    let release: Manifest
    let installed: Manifest?
    /// The markers of the databases at the decision; nil before.
    private let decided: [String: String?]?
    var built: [WritableEffect]?
    private var isHeld = false
    /// The caches that stay as they are, because other processes are using them.
    private(set) var postponed: [Plan.Pending] = []
    /// The databases that recovery leaves as they are, because their present content does not allow the change.
    private(set) var left: [LeftDatabase] = []
    /// Whether a commit was made that cannot be undone: from then on the update can only be finished.
    private(set) var isIrrevocable = false
    private(set) var hasSyncedJournal = false

    init(transaction: Transaction, plan: Plan, decided: [String: String?]?, installed: Manifest?, release: Manifest) {
        (self.transaction, self.plan, self.decided) = (transaction, plan, decided)
        (self.installed, self.release) = (installed, release)
    }

    // MARK: the stages

    /// Whether the update was decided by another process, so that it can only be finished or undone.
    var isRecovery: Bool { decided != nil }
    /// Returns the marker that a database had at the decision; nil if the update is not being recovered.
    func decidedMarker(_ path: String) -> WritableEffect.OldMarker? {
        decided.map { .init(transaction: $0[path] ?? nil) }
    }

    /// Holds every database, before the decision or when an update is recovered. `stop` is polled while waiting for other
    /// processes.
    func hold(stop: () throws -> Void = {}) throws {
        // A power failure may leave a SQLite journal next to a file, and recovery looks for it only if the transaction's
        // journal says that a change was started.
        let effects = try effects().filter { try !isDone($0) }
        if !effects.isEmpty {
            try transaction.journal.sync()
            hasSyncedJournal = true
        }
        isHeld = true
        for effect in effects { try ifPossible(effect) { try requireFile(effect) } }
        for effect in effects where !isSkipped(effect.effect.database) {
            if !(effect is Aside) { try requireOpenable(effect.place) }
            try WritableFile.requireSoleName(effect.place)
        }
        for effect in effects { try ifPossible(effect) { try effect.prepareUnlocked() } }
        // Migrations and row restores may wait a long time for other processes' transactions, so they go first, before the
        // databases of the other effects are locked.
        for effect in effects where effect.waitsForOthers { try ifPossible(effect) { try effect.prepareLocked() } }
        // A cache that is not free must not keep the locks of other databases waiting.
        try acquire(effects.filter(isCache) + effects.filter { !isCache($0) }, stop)
        for effect in effects where !effect.waitsForOthers { try ifPossible(effect) { try effect.prepareLocked() } }
        for effect in effects where !isSkipped(effect.effect.database) { try effect.copyPages() }
    }

    /// Takes private copies of the databases through what `hold` does, and enters into the plan what happens to their rows.
    func rehearse(_ plan: inout Plan) throws {
        for effect in try effects() {
            if !(effect is Aside) { try requireOpenable(effect.place) }
            try WritableFile.requireSoleName(effect.place)
            try effect.rehearse()
            guard let index = plan.effects.firstIndex(of: effect.effect) else { continue }
            plan.effects[index].change = effect.effect.change.counting(effect.fates)
            plan.warnings += effect.warnings
        }
    }

    /// Takes an effect through a stage. A cache that another process is using is postponed: it can be recreated at any time, so it does
    /// not block an update. After the decision nothing refuses: a database whose content does not allow the change stays as it is.
    private func ifPossible(_ effect: WritableEffect, _ stage: () throws -> Void) throws {
        if isSkipped(effect.effect.database) { return }
        do { try stage() } catch let error as MoultError where error.outcome == .busy && isCache(effect) {
            try effect.release()
            postponed.append(Plan.Pending(database: effect.effect.database ?? "", why: error.why ?? error.what))
        } catch let error as MoultError where isRecovery && error.isAboutContent {
            try effect.release()
            leave(effect.effect, error)
        }
    }

    /// Throws if recovery finds no database any more. A cache is created again by the next update.
    private func requireFile(_ effect: WritableEffect) throws {
        guard isRecovery, !(effect is Aside) else { return }
        let facts = try Files.factsThroughLinks(effect.place)
        if facts == nil, effect.effect.database.flatMap(release.database)?.kind.isDisposable == true {
            return postponed.append(Plan.Pending(database: effect.effect.database ?? "", why: "the file is missing"))
        }
        func lost(_ why: String) -> MoultError {
            MoultError(.missingData, .refused, what: "\(effect.place) cannot be changed", why: why)
        }
        guard let facts else { throw lost("a program has removed it since the update was decided") }
        if facts.kind != .file { throw lost("it is not a regular file any more") }
        // When SQLite first opens an empty file, it deletes the sidecars, which may have rows.
        if try facts.size == 0 && !Sidecars.of(effect.place).isEmpty {
            throw lost("the file is empty, and its rows may be in the files beside it")
        }
    }

    func leave(_ effect: Effect, _ error: MoultError) {
        let path = effect.change.traits.paths.last ?? effect.database.flatMap(release.database)?.path
        let place = path.map(place) ?? effect.text
        left.append(LeftDatabase(database: effect.database ?? "", place: place, error: error))
    }

    /// Records what a check has found in recovery, which nothing refuses any more; throws in an update, which can be undone.
    func leaveIfRecovered(_ effect: Effect, _ error: MoultError) throws {
        guard isRecovery, !effect.isCustom, error.outcome != .busy, !(error.cause is Errno) else { throw error }
        leave(effect, error)
    }

    /// Whether the effect only replaces the content of a cache that does not match the release.
    private func isCache(_ effect: WritableEffect) -> Bool {
        guard let name = effect.effect.database, release.database(name)?.kind.isDisposable == true else { return false }
        return switch effect.effect.change {
        case .replace(let new): new.reason == .unfitCache
        case .quarantine(_, _, let reason): reason == .unfitCache
        default: false
        }
    }

    func isSkipped(_ database: String?) -> Bool {
        postponed.contains { $0.database == database } || left.contains { $0.database == database }
    }

    private func acquire(_ effects: [WritableEffect], _ stop: () throws -> Void) throws {
        let deadline = ContinuousClock.now + .seconds(transaction.patience)
        while true {
            do { return try effects.forEach { effect in try ifPossible(effect) { try effect.acquire() } } } catch let
                error as MoultError where error.outcome == .busy && ContinuousClock.now < deadline
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

    func markers() throws -> [String: String?] {
        try effects().reduce(into: [:]) { markers, effect in
            if let marker = effect.marker { markers.updateValue(marker.transaction, forKey: effect.path) }
        }
    }

    func fates() throws -> [RowFate] {
        try effects().flatMap { effect in
            effect.fates.map {
                var fate = $0
                fate.database = effect.effect.database
                return fate
            }
        }
    }

    func changedRows() throws -> [DatabaseChanges] {
        try effects().filter { !isSkipped($0.effect.database) }.compactMap(\.changedRows)
    }

    func perform(_ effect: Effect) throws { if !isSkipped(effect.database) { try find(effect)?.perform() } }
    func revert(_ effect: Effect) throws { try find(effect)?.revert() }

    /// Commits everything. As far as possible, operations that can fail for lack of space or a lock come before the first
    /// commit.
    func finish() throws {
        let effects = try effects()
        for effect in effects {
            do { if try effect.commit() { isIrrevocable = true } } catch {
                if hasCommitted(effect, despite: error) { isIrrevocable = true }
                throw error
            }
        }
        for effect in effects { try effect.finish() }
        try syncNames(effects)
    }

    /// Returns whether a commit took effect although it threw an error. If that cannot be known, finishing the update is the only safe
    /// choice.
    private func hasCommitted(_ effect: WritableEffect, despite error: any Error) -> Bool {
        do {
            try effect.endFailedCommit(error)
            // This process's own lock would block the connection that reads the marker.
            try effect.release()
            return try isCommitted(effect)
        } catch { return true }
    }

    /// Releases everything, and removes the sets in quarantine that are not needed.
    func releaseAll() throws {
        guard isHeld else { return }
        for effect in try effects().reversed() { try effect.release() }
        try Displacement.removeNeedlessSets(transaction, plan)
    }

    /// Syncs the directories of the databases. SQLite does not sync the removal of its journal, so after a power failure the
    /// journal could reappear and be rolled back.
    private func syncNames(_ effects: [WritableEffect]) throws {
        for directory in Set(effects.map { Files.directory(of: $0.place) }).sorted() {
            try Files.syncDirectory(directory)
        }
    }

    // MARK: recovery

    private func isCommitted(_ effect: WritableEffect) throws -> Bool {
        if effect is Aside { return false }
        return try TransactionMarker.read(at: effect.place) == transaction.id
    }

    func isDone(_ effect: Effect) throws -> Bool { try find(effect).map(isDone) ?? false }
    private func isDone(_ effect: WritableEffect) throws -> Bool { try isRecovery && isCommitted(effect) }

    /// Throws if a commit was made that cannot be undone. Called before an undo after a crash.
    func requireRevocable() throws {
        guard let effect = try effects().first(where: isCommitted) else { return }
        throw MoultError(
            .stuck, .refused, what: "the update to \(release.version) can no longer be undone",
            why: "\(effect.effect.database ?? "a database") is already updated, and apps may have written to it since",
            now: "Finish the update: \(moult: "recover"). Then roll back: \(moult: "rollback")")
    }

    private func find(_ effect: Effect) throws -> WritableEffect? { try effects().first { $0.effect == effect } }
    func place(_ path: String) -> String { transaction.layout.file(path) }
}

/// A database that recovery leaves as it is.
package struct LeftDatabase: Sendable, Equatable {
    package let database: String
    package let place: String
    package let error: MoultError

    package static func == (one: Self, other: Self) -> Bool { one.place == other.place }
}

extension MoultError {
    /// Whether the content of a database caused the error: trying again would end in the same way.
    fileprivate var isAboutContent: Bool {
        let codes: [Code] = [
            .migration, .preserve, .userDatabase, .missingData, .databaseCorrupt, .encoding, .occupied, .appExtension,
            .rowRejected, .rowConflict, .shippedViolation, .selection,
        ]
        return codes.contains(code) && outcome != .busy && !(cause is Errno)
    }
}

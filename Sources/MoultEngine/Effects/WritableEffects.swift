internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import MoultStore
internal import MoultTrust
internal import StepKit

/// Takes the effects on writable databases through their stages: all databases are held before any is changed.
final class WritableEffects {
    let transaction: Transaction
    let plan: Plan
    let release: Manifest
    let installed: Manifest?
    /// The record of the decision: inodes of staged files, and facts from the effects.
    var inodes: [String: UInt64] {
        didSet { if inodes != oldValue, !isHeld { built = nil } }
    }
    /// The digests that identify staged files in a copied store, where inodes prove nothing; nil in any other store.
    let digests: [String: String]?
    var built: [any WritableEffect]?
    private var isHeld = false
    /// The databases that draining takes out of WAL mode.
    private var wal: Set<String> = []
    /// Whether a commit was made that cannot be undone: from then on the update can only be finished.
    private(set) var isIrrevocable = false

    init(
        transaction: Transaction, plan: Plan, inodes: [String: UInt64], digests: [String: String]? = nil,
        installed: Manifest?, release: Manifest
    ) {
        (self.transaction, self.plan, self.inodes, self.digests) = (transaction, plan, inodes, digests)
        (self.installed, self.release) = (installed, release)
    }

    /// Whether an earlier process has made the decision, so that this one recovers the update.
    var isDecided: Bool { !inodes.isEmpty || digests != nil }

    // MARK: the stages

    /// Holds every database, before the decision or when an update is recovered. `stop` is polled while waiting for other
    /// processes.
    func hold(stop: () throws -> Void = {}) throws {
        // A power failure may leave a SQLite journal next to a file, and recovery looks for it only if the transaction's
        // journal says that a change was started.
        let effects = try effects().filter { try !isDone($0.effect) }
        if !effects.isEmpty { try transaction.journal.sync() }
        for effect in effects { try requireOpenable(effect.effect.drainedPath.map(place) ?? effect.place) }
        isHeld = true
        // Recovery finds the second names that this update gives to files that it sets aside.
        for effect in effects where !isDecided || effect.effect.drainedPath == nil {
            try SoleName.require(effect.place)
        }
        // This check comes before anything is drained: a refused update must not change even a journal mode.
        for effect in effects where effect.effect.drainedPath != nil { try waitUntilClosed(effect) }
        try recordJournalModes(effects)
        for effect in effects { try effect.examine() }
        // Migrations and row restores may wait a long time for other processes' transactions, so they go first, before the
        // databases of the other effects are locked.
        for effect in effects where effect.waitsForOthers { try effect.hold() }
        try acquire(effects, stop)
        for effect in effects where !effect.waitsForOthers { try effect.hold() }
        for effect in effects { try effect.copyPages() }
    }

    private func acquire(_ effects: [any WritableEffect], _ stop: () throws -> Void) throws {
        let deadline = ContinuousClock.now + .seconds(transaction.patience)
        while true {
            do { return try effects.forEach { try $0.acquire() } } catch let error as MoultError
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

    private func waitUntilClosed(_ effect: any WritableEffect) throws {
        if let adoption = effect as? Adoption, adoption.isCopied { return }
        guard let path = effect.effect.drainedPath.map(place), try Files.facts(path)?.kind == .file else { return }
        let files = try [path] + Sidecars.of(path).paths
        var backoff = Backoff(.seconds(2), longest: 20)
        while try OpenFiles.isOpenHere(path) || !OpenFiles.holders(of: files).isEmpty {
            if !backoff.pause() { throw InUse.error(path, advice: "Stop that program, and try again.") }
        }
    }

    private func recordJournalModes(_ effects: [any WritableEffect]) throws {
        for effect in effects {
            guard let path = effect.effect.drainedPath, try Files.facts(place(path))?.kind == .file,
                try (effect as? SetAside)?.isReadable() ?? true, try isWAL(place(path))
            else { continue }
            wal.insert(path)
        }
        if !wal.isEmpty { try transaction.journal.draining(wal: wal) }
    }

    private func isWAL(_ place: String) throws -> Bool {
        // A file that this user may not read is set aside unchanged, so its journal mode does not matter.
        try Files.isReadable(place) && Connection.isWAL(ofFileAt: place)
    }

    /// Returns the facts that the decision records for recovery.
    func facts() throws -> [String: UInt64] {
        try effects().reduce(into: [:]) { $0.merge(try $1.facts) { $1 } }
    }

    /// Returns the digests of staged files that carry no marker of their release, for recovery in a copied store: the files
    /// that a reset restores from quarantine. All others are known by their marker, or by the digest in the manifest.
    func stagedDigests() throws -> [String: String] {
        var digests: [String: String] = [:]
        for effect in plan.effects {
            guard case .quarantine(let path, _, _) = effect.change else { continue }
            let waiting = transaction.waiting(path)
            guard try Files.facts(waiting)?.kind == .file else { continue }
            digests["waiting/\(path)"] = try SHA256.digest(ofFileAt: waiting).hex
        }
        return digests
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

    func perform(_ effect: Effect) throws { try find(effect)?.perform() }
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
        try restoreJournalModes(isInstalled: true)
        try Displacement.completeSets(transaction, plan, isInstalled: true)
        try syncNames(effects)
    }

    /// Releases everything, restores the journal modes of the app's files, and completes the sets in quarantine.
    func releaseAll() throws {
        guard isHeld else { return }
        for effect in try effects().reversed() { try effect.release() }
        try restoreJournalModes(isInstalled: false)
        try Displacement.completeSets(transaction, plan, isInstalled: false)
    }

    private func restoreJournalModes(isInstalled: Bool) throws {
        try JournalModeRestore.restore(plan, transaction.layout, wal: wal, isInstalled: isInstalled)
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
        case .replace(let path, _, _, _, _): try isReplaced(effect, path)
        case .migrate(let path, _, _, let target, _): try Migration.isDone(place(path), target: target)
        default: false
        }
    }

    /// Returns whether the database has this release's content. Before the decision nothing is replaced, whatever a file's
    /// marker says: a file that is taken over may have had the same content before.
    func isReplaced(_ effect: Effect, _ path: String) throws -> Bool {
        guard let database = effect.database.flatMap(release.database), isDecided,
            try Files.factsThroughLinks(place(path)) != nil, try isDatabase(place(path))
        else { return false }
        let connection = try Connection(path: place(path), access: .readWrite)
        let hasMarker = try connection.int(ReleaseMarker.isThere) == 1
        // A file from before moult has no marker, and the content that it replaces has one.
        let isThere =
            try database.kind.isReplaced
            ? hasMarker && connection.scalar(ReleaseMarker.digest) == .text(database.sha256)
                && inodes[Rewrite.key(path)].map { try $0 != Rewrite.schemaVersion(connection) } ?? true
            : !hasMarker
        try connection.close()
        return isThere
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
                case .replace(let path, _, _, _, _): try isReplaced(effect, path)
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

internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// Finishes or undoes interrupted updates. If no decision was recorded, the staged files are discarded. Otherwise the update is
/// finished, or undone if the operator requests that.
package struct CrashRecovery {
    let store: StoreSnapshot
    let steps: StepSet
    let tell: @Sendable (Event) -> Void
    let consumers: [Consumer]
    let forceAfter: Int?
    /// Whether recovery is made for a reader. It then stays in the directory of the store, and asks no consumer to release its
    /// databases: the reader may be part of a consumer, which would then wait for itself.
    let isForReader: Bool

    var layout: StoreLayout { store.layout }

    /// After this many consecutive crashes, an operator must investigate: recovery itself may be the cause.
    static let maxAttempts = 3

    /// Recovers all interrupted updates. Requires the store's lock. `back` undoes an update instead of finishing it;
    /// `ignoringLimit` tries again even after `maxAttempts` crashes.
    package func recover(ignoringLimit: Bool = false, back: Bool = false) throws -> [Result] {
        for directory in [layout.quarantine, layout.transactions] { try CacheTag.remove(from: directory) }
        // A process may have crashed after it added or removed a hard link and before it recorded the file's new metadata.
        try LinkedFiles(layout).refresh()
        for transaction in try Transaction.all(layout) {
            if try transaction.isEnded {
                if !isForReader { try removeEnded(transaction) }
            } else if try transaction.isLeftover {
                try transaction.remove()
            }
        }
        try sweep()
        return try Transaction.unfinished(layout).map { transaction in
            var transaction = transaction
            transaction.patience = try store.settings.waitForApps
            let result = try recover(transaction, ignoringLimit: ignoringLimit, back: back)
            tell(.recovered(result))
            return result
        }
    }

    /// Removes an update that has ended, and the markers that it left in databases. The record is not trusted.
    private func removeEnded(_ transaction: Transaction) throws {
        _ = try transaction.checkedState(cacheRoot: store.settings.cacheRoot)
        try transaction.remove()
    }

    /// Removes files that killed commands left behind and that no unfinished update needs.
    private func sweep() throws {
        var settings = try store.settings
        if isForReader { settings.cacheRoot = nil }
        try QuarantineShelf(layout: layout, settings: settings).sweep(except: Transaction.unfinished(layout).map(\.id))
        for file in [
            layout.settings, layout.announced, layout.links, layout.checks, layout.holds, layout.history,
            ReplayGuard.path(layout), layout.attempt,
        ] { try Files.removeStaged(of: file) }
        try History.dropTornLine(layout)
    }

    private func recover(_ transaction: Transaction, ignoringLimit: Bool, back: Bool) throws -> Result {
        let state = try transaction.checkedState(cacheRoot: store.settings.cacheRoot)
        if let plan = state.plan, let sentence = try reach(plan, transaction).sentence {
            tell(.warning(Advice(sentence)))
        }
        var left: [LeftDatabase] = []
        func complete(_ ending: History.Entry.Outcome) throws -> Result {
            var result = Result(transaction: transaction.id, ending: ending, plan: state.plan)
            if let plan = state.plan {
                try rollBackJournals(of: plan)
                if ending != .finished { try Displacement.removeNeedlessSets(transaction, plan) }
                if ending != .cleaned {
                    try Removable.keepDisplaced(by: plan, transaction)
                    let shelf = QuarantineShelf(layout: layout, settings: try store.settings)
                    result.kept = try shelf.sets(of: plan.id)
                }
                result.left = left
                try record(plan, result)
                let calls = try calls(transaction, plan, state)
                let failures = calls.reload(ending == .finished ? .installed : .undone, all: ending != .cleaned)
                if ending == .finished, let failed = failures.first(where: \.consumer.isFatal) {
                    result.failed = failed
                    try record(plan, stuck: "the consumer \(failed.consumer.name) did not reload: \(failed.reason)")
                }
                for left in left { try record(plan, stuck: "\(left.place) stays as it is: \(left.error.what)") }
            }
            try transaction.remove()
            return result
        }
        guard let plan = state.plan, let decided = state.decided else {
            if let plan = state.plan, !steps.others(of: plan).isEmpty { cleanSteps(transaction, plan) }
            return try complete(.cleaned)
        }
        OpenDecision.begin()
        defer { OpenDecision.end() }
        if state.attempts >= Self.maxAttempts, !ignoringLimit { throw tooManyAttempts(plan, state.attempts) }
        // An update whose end is in the history was only interrupted while its records were removed.
        let isForward = try state.undoing == nil && (!back || isRecorded(plan))
        var isAttempted = false
        do {
            let execution = try execution(transaction, plan, decided, isForward: isForward)
            // If an app has a writable file open, this throws a busy error, which does not count as a failed attempt.
            if isForward {
                if !isForReader { try calls(transaction, plan, state).release() }
                try execution.holdAgain()
            }
            if back, state.undoing == nil { try execution.writable.requireRevocable() }
            try transaction.journal.attempt()
            isAttempted = true
            if !isForward {
                if state.undoing == nil { try transaction.journal.undoing("requested by the operator") }
                try execution.undoEffects(plan.effects)
                execution.clean(.undone)
                return try complete(.undone)
            }
            try execution.applyEffects()
            try execution.finish()
            left = execution.writable.left
            execution.clean(.done)
            return try complete(.finished)
        } catch let error as MoultError where error.outcome == .busy && !(isForward && isAttempted) {
            // Nothing was changed, or the undo is journaled: the next recovery continues once no process is using the file.
            throw error
        } catch let error as MoultError where !isAttempted && [.interrupted, .stuck].contains(error.code) {
            throw error
        } catch { throw stuck(plan, error, isForward: isForward) }
    }

    /// Opens the databases that the update wrote to, so that SQLite rolls back a transaction that a crash interrupted. Until then, the
    /// file alone is a mixture, and a reader without write permission cannot open it.
    private func rollBackJournals(of plan: Plan) throws {
        for traits in plan.effects.map(\.change.traits) where traits.handling == .written {
            for place in traits.paths.map(layout.file) where try Sidecars.of(place).journal != nil {
                // SQLite would delete the journal of an empty file, which may have the only copy of its pages.
                if try Files.factsThroughLinks(place)?.size ?? 0 == 0 { continue }
                do {
                    let connection = try Connection(path: place, access: .readWrite, busyTimeout: 0)
                    _ = try connection.int("PRAGMA schema_version")
                    // A journal without pages is not rolled back. SQLite removes it only when it leaves the mode PERSIST, which is not
                    // recorded in the file.
                    if try !connection.header().isWAL, try Sidecars.of(place).journal != nil {
                        for mode in ["persist", "delete"] { _ = try connection.scalar("PRAGMA journal_mode = \(mode)") }
                    }
                    try connection.close()
                } catch let error as MoultError {
                    // A process that has the database open does this itself; damage is reported by the code that reads it.
                    let others: [ResultCode] = [.busy, .locked, .corrupt, .notADatabase]
                    guard let code = error.sqlite?.resultCode, others.contains(code.primary) else { throw error }
                }
            }
        }
    }

    /// Notifies the steps that are not built in that an update ended without a decision, as if no crash had occurred.
    private func cleanSteps(_ transaction: Transaction, _ plan: Plan) {
        let path = transaction.manifest
        do {
            // The crash may have come before this manifest was written, and so before any step prepared.
            guard let bytes = try Files.read(path, limit: Manifest.largest) else { return }
            let release = try Manifest(parsing: bytes, as: .sealed, source: path)
            try execution(transaction, plan, nil, release, bytes, at: layout.generation(plan.to.generation))
                .clean(.failed)
        } catch { tell(.warning("\(error)")) }
    }

    private func calls(_ transaction: Transaction, _ plan: Plan, _ state: Journal.State) throws -> ConsumerCalls {
        ConsumerCalls(
            transaction, plan, among: consumers, forceAfter: forceAfter, released: state.released,
            watcher: Watcher(tell: tell))
    }

    private func execution(
        _ transaction: Transaction, _ plan: Plan, _ decided: [String: String?], isForward: Bool
    ) throws -> Execution {
        // The path of the new generation depends on the progress of the update. If the update repairs a generation, the damaged
        // one may exist as well.
        let installedDirectory = layout.generation(plan.to.generation)
        for path in [transaction.generation, installedDirectory].map({ "\($0)/\(Generation.manifestName)" })
            + [transaction.manifest]
        {
            let directory = path == transaction.manifest ? installedDirectory : Files.directory(of: path)
            // A manifest that cannot be parsed is the damaged one that the update replaces.
            guard try Files.facts(path)?.kind == .file, let bytes = try Files.read(path, limit: Manifest.largest),
                let release = try? Manifest(parsing: bytes, as: .sealed, source: path),
                try directory == installedDirectory || Generation.name(of: release, bytes: bytes) == plan.to.generation
            else { continue }
            return try execution(transaction, plan, decided, release, bytes, at: directory, needsInstalled: isForward)
        }
        throw MoultError(
            .stuck, .stuck, what: "\(installedDirectory)/\(Generation.manifestName) cannot be read",
            why: "the unfinished update needs this file",
            now:
                "Copy the manifest of release \(plan.to.version) there, then undo the update: \(moult: "recover", "--undo")"
        )
    }

    private func execution(
        _ transaction: Transaction, _ plan: Plan, _ decided: [String: String?]?, _ release: Manifest, _ bytes: [UInt8],
        at directory: String, needsInstalled: Bool = true
    ) throws -> Execution {
        let installed = try plan.from.flatMap { from -> Manifest? in
            if from.generation == plan.to.generation { return release }
            do { return try Generation.load(from.generation, in: layout).manifest } catch {
                // An undo only renames files back, so it does not need the manifest of the previous release.
                if needsInstalled || Files.isDenied(error) { throw error }
                tell(.warning("\(error)"))
                return nil
            }
        }
        var policy = Policy(
            follow: .match, allowDowngrade: true, moultVersion: moultVersion, cacheRoot: try store.settings.cacheRoot)
        policy.checkTime.fixed = plan.request.checkTimeout
        var context = PlanContext(
            purpose: plan.purpose, only: plan.reset?.database, release: release, generation: plan.to.generation,
            installed: installed, installedGeneration: plan.from?.generation,
            resources: plan.manifestPath.map(Files.directory(of:)) ?? directory, policy: policy,
            store: RecordingView(store: StoreSnapshot(layout)))
        context.planned = plan.effects
        let restored = Staging.restored(in: transaction.directory)
        if plan.purpose == .reset, try Files.facts(restored) != nil { context.restoring = restored }
        let incoming = Planner.Incoming(
            bytes: bytes, name: directory, path: nil, provenance: .kept, isSignedByReleaseKeys: false)
        return Execution(
            Planner.PreparedPlan(plan: plan, store: store, context: context, incoming: incoming), in: transaction,
            steps: steps, watcher: Watcher(tell: tell), decided: decided)
    }

    /// Returns whether the process crashed after it had added the end of the update to the history.
    private func isRecorded(_ plan: Plan) throws -> Bool {
        let existing = try HistoryReader(layout).first {
            $0.transaction == plan.id && ![.failed, .stuck].contains($0.outcome) || $0.isLongBefore(plan)
        }
        return existing?.transaction == plan.id
    }

    private func record(_ plan: Plan, _ result: Result) throws {
        if try isRecorded(plan) { return }
        // The operator's reason for a rollback is recorded even if the rollback was interrupted.
        let reason = [result.text, plan.rollbackReason].compactMap(\.self).joined(separator: ": ")
        var entry = History.Entry(of: plan, result.ending, reason: reason)
        (entry.rows, entry.kept) = (result.rows, result.kept.map(\.id))
        entry.holds = plan.hold == nil ? nil : try Holds.recorded(layout)
        try History.append(entry, to: layout)
    }

    private func record(_ plan: Plan, stuck reason: String) throws {
        try History.append(History.Entry(of: plan, .stuck, reason: reason), to: layout)
    }

    private func tooManyAttempts(_ plan: Plan, _ attempts: Int) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the \(plan.title) in \(layout.root) was not finished in \(attempts) attempts",
            why: "every attempt was interrupted or failed",
            now: "Try once more with: \(moult: "recover"), or undo the change: \(moult: "recover", "--undo")")
    }

    private func stuck(_ plan: Plan, _ error: any Error, isForward: Bool) -> MoultError {
        // Only advice about the system or the file's names applies here. Any other advice is for starting an update, which would
        // lead back to this error.
        let cause = error as? MoultError
        let isApplicable = Files.isDenied(error) || cause?.cause is Errno || cause?.code == .severalNames
        let remedy = isApplicable ? cause?.now : nil
        return MoultError(
            .stuck, .stuck,
            what: "the unfinished \(plan.title) in \(layout.root) cannot be \(isForward ? "finished" : "undone")",
            why: error.problem,
            now: (remedy.map { "\($0.sentence) Then" } ?? "Fix the cause, then")
                + (isForward
                    ? " run: \(moult: "recover"), or undo the change: \(moult: "recover", "--undo")"
                    : " repeat: \(moult: "recover", "--undo")"),
            cause: error)
    }

    /// The result of recovering one interrupted update.
    package struct Result: Sendable, Equatable {
        package let transaction: String
        /// No decision had been recorded, and the staged files were removed (`cleaned`); the update was `finished`; or it was `undone`.
        package let ending: History.Entry.Outcome
        /// Nil if its record is damaged.
        let plan: Plan?
        /// The essential consumer that did not reload after the update was finished; nil if all did.
        package var failed: ConsumerCalls.Failure?
        /// The databases that stay as they are, because their present content does not allow the change.
        package var left: [LeftDatabase] = []
        package var kept: [QuarantineShelf.Set] = []

        package var update: String { plan?.words ?? "an update" }
        package var from: Generation.Reference? { plan?.from }
        package var to: Generation.Reference? { plan?.to }
        package var finished: Plan? { ending == .finished ? plan : nil }

        package var text: String {
            ending == .cleaned
                ? "\(update) was interrupted before it changed anything; its staged files were removed"
                : "\(update) was interrupted halfway, and is now \(ending.rawValue)"
        }

        /// The rows that only the old content has. Other counts of the update were lost in the crash.
        var rows: [RowFate] {
            kept.compactMap(\.record).flatMap { record in
                (record.rows ?? [:]).filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { table, count in
                    var fate = RowFate(table: table.text, kept: count)
                    fate.database = record.database
                    return fate
                }
            }
        }
    }
}

internal import MoultBasics
package import MoultEngine
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
package import MoultStore
package import StepKit

/// Everything that can be done to a store: each operation that writes takes the lock and settles first.
package struct Orchestrator: Sendable {
    package let layout: StoreLayout
    /// The steps of the command or app; those that the store's settings name are added where they are needed.
    private let ownSteps: StepSet
    package let watcher: Watcher
    package let consumers: ConsumerOptions

    package init(
        root: String, steps: StepSet, watcher: Watcher = Watcher(), consumers: ConsumerOptions = ConsumerOptions()
    ) throws {
        layout = try StoreLayout(root: root)
        ownSteps = steps
        self.watcher = watcher
        self.consumers = consumers
    }

    /// The current state of the store.
    func snapshot() -> StoreSnapshot { StoreSnapshot(layout) }

    func planner(_ store: StoreSnapshot) throws -> Planner {
        Planner(
            store: store, steps: try steps(store), inProcess: consumers.inProcess,
            forcesRelease: consumers.forceAfter != nil)
    }

    /// All steps that this store has.
    func steps(_ store: StoreSnapshot) throws -> StepSet {
        try store.proveSettings()
        return try ownSteps.adding(store.settings.steps)
    }

    /// The result of an update.
    package struct Result: Sendable {
        /// Nil if there was nothing to do.
        package var plan: Plan?
        package var settled: [CrashRecovery.Result] = []
        package var collected = Collector.Report()
        package var quarantine = QuarantineShelf.Report()
        /// What happened to the rows of each database whose content was replaced or migrated.
        package var rows: [RowFate] = []
        /// The old content that is in quarantine now.
        package var kept: [QuarantineShelf.Set] = []
        /// The installed generation.
        package var generation: String?
        /// The caches that do not fit and stay, because processes have them open.
        package var pending: [Plan.Pending] = []
        /// Who still reads a generation before it.
        package var laggards: [Laggard] = []
        /// Processes that have files of an older release open and do not follow the store.
        package var outdated: [OutdatedReader] = []
    }

    // MARK: looking

    /// `deep` counts also what takes as long as reading the bundle and the databases.
    package func plan(_ request: UpdateRequest, deep: Bool = false) throws -> Plan {
        try refusingDamage {
            var made = try planner(snapshot()).update(request)
            try MigrationForecast(layout: layout, release: made.context.release, isDeep: deep).fill(&made.plan)
            try SchemaForecast(layout: layout, context: made.context, isDeep: deep).prove(made.plan)
            if deep {
                try ContentForecast(layout: layout, release: made.context.release, installed: made.context.installed)
                    .fill(&made.plan)
            }
            return made.plan
        }
    }

    package func planRollback(
        to wanted: String?, reason: String, force: Bool = false, consent: Consent = Consent()
    ) throws -> Plan {
        try refusingDamage {
            try planner(snapshot()).rollback(to: wanted, reason: reason, force: force, consent: consent).plan
        }
    }

    /// Whether a command that writes would have something to settle first.
    package func isUnfinished() throws -> Bool { try !Transaction.unfinished(layout).isEmpty }

    /// The unfinished work that a writing command would finish first.
    package func unfinished() throws -> Unfinished { try Unfinished(in: layout) }

    /// The bytes that are free where the store is.
    package func freeSpace() throws -> Int { try Files.freeSpace(layout.root) }

    // MARK: changing

    /// Brings a release in. If it is installed already, only what was found about changed databases is written.
    ///
    /// `announce` gets the plan before anything is begun; an error from it ends the update.
    package func update(
        _ request: UpdateRequest, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        let store = snapshot()
        let bytes = try Files.read(request.manifest, limit: Manifest.largest)
        if let bytes, try NoOpCheck(store).isCurrent(bytes, of: request.manifest) {
            try rememberIfIdle(store)
            return Result(generation: try store.installedName)
        }
        return try avoidingUnfitPatches(store) { planner in
            do {
                return try locked(wait) { store, settled in
                    try execute(in: store, settled: settled, announce) { try planner.locked($0).update(request) }
                }
            } catch  where Files.isDenied(error) {
                // A copied store that cannot be written to, such as one in an image: nothing has to be done to it.
                let store = snapshot()
                guard let bytes, try NoOpCheck(store).isCurrent(bytes, of: request.manifest, reading: true) else {
                    throw error
                }
                return Result(generation: try store.installedName)
            }
        }
    }

    /// Goes back to a kept generation, and puts the current release on hold.
    package func rollback(
        to wanted: String?, reason: String, force: Bool = false, consent: Consent = Consent(), wait: Int = 0,
        announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        try locked(wait) { store, settled in
            // A rollback that was interrupted, and is given again, is done: it must not go back one release more.
            if settled.contains(where: \.isFinishedRollback), let installed = try store.installedName,
                wanted.map({ RollbackTarget.isNamed($0, installed) }) ?? true
            {
                return Result(settled: settled, generation: installed)
            }
            return try execute(in: store, settled: settled, announce) {
                try planner($0).locked($0).rollback(to: wanted, reason: reason, force: force, consent: consent)
            }
        }
    }

    /// Does exactly a saved plan, once.
    package func apply(_ saved: Plan, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }) throws -> Result {
        try avoidingUnfitPatches(snapshot()) { planner in try apply(saved, by: planner, wait: wait, announce) }
    }

    private func apply(
        _ saved: Plan, by planner: Planner, wait: Int, _ announce: (Plan) throws -> Void
    ) throws -> Result {
        // Files from a feed must be complete before the store is locked; whatever the plan relies on is verified again then.
        let fetched = try saved.origin.map { try fetch($0, saved, by: planner, wait: wait) }
        return try locked(wait) { store, settled in
            try SavedPlan(plan: saved, layout: layout).proveFresh()
            return try execute(in: store, settled: settled, announce) { store in
                let planner = planner.locked(store)
                var made =
                    switch saved.purpose {
                    case .update:
                        if let fetched {
                            try planner.update(fetched, saved.updateRequest)
                        } else {
                            try planner.update(saved.updateRequest)
                        }
                    case .rollback:
                        try planner.rollback(
                            to: saved.to.generation, reason: saved.hold?.reason ?? "", force: saved.request.force,
                            consent: Consent(takeOver: saved.request.takeOver))
                    case .reset:
                        try planner.reset(
                            saved.reset?.database ?? "", why: saved.reset?.why ?? "", setsUserDataAside: true)
                    }
                try SavedPlan(plan: saved, layout: layout).proveSame(made.plan)
                made.plan.id = saved.id
                made.plan.hold = saved.hold
                return made
            }
        }
    }

    /// Settles what is unfinished, however often that was tried; back instead of forward if asked.
    package func recover(back: Bool = false, wait: Int = 0) throws -> [CrashRecovery.Result] {
        let recovery = try recovery(snapshot())
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        if let generation = try Generation.repairPointer(layout) {
            watcher.tell(.warning("\(layout.current) was recreated: \(generation) is in service"))
        }
        let moved = try History.moveAway(layout)
        let results = try recovery.settle(patiently: true, back: back)
        try LeaseFile.tidy(layout)
        try rebuildHolds()
        // Only now: the holds must know whether the history lacks lines.
        warning { try repairHistory(moved) }
        return results
    }

    /// Finishes or undoes an interrupted update if no other process is doing so; for readers that are about to open the
    /// databases.
    package func recoverIfIdle() throws {
        guard try isUnfinished(), let lock = try StoreLock.takeIfFree(layout) else {
            return
        }
        defer { withExtendedLifetime(lock) {} }
        // Consumers are not asked to close for a reader: the reader may be part of the very program that would be stopped.
        _ = try recovery(snapshot(), mayRelease: false).settle()
    }

    private func recovery(_ store: StoreSnapshot, mayRelease: Bool = true) throws -> CrashRecovery {
        CrashRecovery(
            layout: layout, steps: try steps(store), tell: watcher.tell, consumers: try allConsumers(store),
            forceAfter: consumers.forceAfter, mayRelease: mayRelease, patience: try store.settings.waitForApps)
    }

    private func allConsumers(_ store: StoreSnapshot) throws -> [Consumer] {
        try store.settings.consumers + consumers.inProcess
    }

    /// Removes old generations and, if days are given, what has been in quarantine for longer.
    package func clean(
        keep: Int? = nil, quarantineDays: Int? = nil, includingUserData: Bool = false, dry: Bool = false, wait: Int = 0
    ) throws -> Result {
        func clean(_ store: StoreSnapshot, _ settled: [CrashRecovery.Result]) throws -> Result {
            let settings = try store.settings
            let shelf = QuarantineShelf(layout: layout, settings: settings)
            let collected = try Collector(layout: layout, settings: settings).collect(keep: keep, dry: dry)
            let quarantine = try quarantineDays.map {
                try shelf.clean(olderThan: $0, includingUserData: includingUserData, dry: dry)
            }
            return Result(settled: settled, collected: collected, quarantine: quarantine ?? .init())
        }
        return try dry ? clean(snapshot(), []) : locked(wait, clean)
    }

    // MARK: parts

    /// Plans again while a program has a database locked against readers, as long as the settings say.
    func waitingForApps(
        _ store: StoreSnapshot, _ plan: () throws -> Planner.PreparedPlan
    ) throws -> Planner.PreparedPlan {
        var backoff = Backoff(.seconds(try store.settings.waitForApps))
        while true {
            do { return try plan() } catch let error as MoultError {
                guard error.code == .databaseBusy, backoff.pause() else { throw error }
                try watcher.stopIfAsked()
            }
        }
    }

    /// Takes the store's lock and settles what is unfinished; `body` gets the store as it is then.
    func locked(_ wait: Int, _ body: (StoreSnapshot, [CrashRecovery.Result]) throws -> Result) throws -> Result {
        let recovery = try recovery(snapshot())
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        return try refusingDamage {
            let settled = try recovery.settle()
            try LeaseFile.tidy(layout)
            return try body(snapshot(), settled)
        }
    }

    /// Plans and does it; a program that has a database locked is waited for, and programs that open one for a moment at a
    /// time are, too.
    func execute(
        in store: StoreSnapshot, settled: [CrashRecovery.Result], stopwatch: Stopwatch = Stopwatch(),
        _ announce: (Plan) throws -> Void, _ prepare: (StoreSnapshot) throws -> Planner.PreparedPlan
    ) throws -> Result {
        let deadline = ContinuousClock.now + .seconds(try store.settings.waitForApps)
        var (store, isAnnounced) = (store, false)
        while true {
            do {
                return try attempt(in: store, settled: settled, stopwatch: stopwatch, until: deadline, prepare) {
                    plan in
                    if !isAnnounced { try announce(plan) }
                    isAnnounced = true
                }
            } catch is StoreChanged {
                try watcher.stopIfAsked()
                store = snapshot()
            }
        }
    }

    /// A program used a database at the wrong moment, nothing has changed, and another attempt is still possible.
    private struct StoreChanged: Error {}

    private func attempt(
        in store: StoreSnapshot, settled: [CrashRecovery.Result], stopwatch: Stopwatch,
        until deadline: ContinuousClock.Instant, _ prepare: (StoreSnapshot) throws -> Planner.PreparedPlan,
        _ announce: (Plan) throws -> Void
    ) throws -> Result {
        let made = try waitingForApps(store) { try prepare(store) }
        let plan = made.plan
        guard plan.changesStore else {
            return Result(settled: settled, generation: plan.to.generation, pending: plan.pending)
        }
        try announce(plan)
        for warning in plan.warnings { watcher.tell(.warning(warning)) }
        var transaction = Transaction(layout: layout, id: plan.id)
        transaction.patience = try made.store.settings.waitForApps
        // Files that existed before are not this update's to remove.
        guard Transaction.isID(plan.id), try Files.facts(transaction.directory) == nil else {
            throw MoultError(
                .stale, .stale, what: "the plan \(plan.id) cannot be executed",
                why: "it is not new: \(transaction.directory) already exists",
                now: "Make another plan with: moult plan --output FILE RELEASE")
        }
        let calls = ConsumerCalls(
            transaction, plan, among: try allConsumers(made.store), forceAfter: consumers.forceAfter, watcher: watcher)
        var rows: [RowFate] = []
        do {
            rows = try Pipeline(
                transaction: transaction, steps: try steps(made.store), watcher: watcher, made: made, consumers: calls,
                stopwatch: stopwatch
            )
            .run()
        } catch {
            let reason = (error as? Pipeline.JournalModeNotRestored)?.reason ?? error
            if (reason as? MoultError)?.outcome != .stuck {
                tidy(Self.wasUndone(reason) ? .undone : .failed, made, transaction)
            }
            let told = leave(transaction, calls, error, because: reason)
            // Consumers are not called over and over.
            if plan.calls.isEmpty, Self.isInUse(told), ContinuousClock.now < deadline,
                try Files.facts(transaction.directory) == nil
            {
                throw StoreChanged()
            }
            // A patch that does not fit is not a failure: start again without it.
            if !(reason is PatchFault) { warning { try record(plan, stopwatch, failure: reason) } }
            throw told
        }
        var result = Result(plan: plan, settled: settled, generation: plan.to.generation)
        (result.rows, result.pending) = (rows, plan.pending)
        var isRecorded = false
        warning {
            try ReplayGuard.note(plan, transaction)
            try transaction.journal.end("committed")
            result.kept = try QuarantineShelf(layout: layout, settings: made.store.settings).sets(of: plan.id)
            try record(plan, stopwatch, failure: nil, result)
            isRecorded = true
        }
        // It only saves work later.
        warning { try remember(plan) }
        tidy(.done, made, transaction)
        let failures = calls.reload(.installed, all: true)
        // What could not be recorded now, the next command makes good: it needs the journal for that.
        if isRecorded { warning { try transaction.remove() } }
        if let failure = failures.first(where: \.consumer.isFatal) { throw withdraw(plan, because: failure) }
        warning {
            let settings = try made.store.settings
            result.laggards = try Laggard.wait(
                layout, seconds: consumers.waitForReaders ?? settings.waitForReaders, stop: watcher.stopIfAsked)
            if plan.from != nil {
                result.outdated = try Holders.outdated(in: snapshot(), except: plan.to.generation)
            }
            // Recovery of an update that could not be recorded reads the generation that it came from.
            if isRecorded { result.collected = try Collector(layout: layout, settings: settings).collect() }
            result.quarantine = try QuarantineShelf(layout: layout, settings: settings).enforceLimit()
            result.kept.removeAll { kept in result.quarantine.removed.contains { $0.id == kept.id } }
        }
        return result
    }

    /// Records the result of checking changed databases, so that the next look need not open them. A process without write
    /// permission, or next to a running update, skips this.
    func rememberIfIdle(_ store: StoreSnapshot) throws {
        guard let generation = try store.installed else { return }
        do {
            guard try Assessment(of: generation, in: store).isOutdated(),
                let lock = try StoreLock.takeIfFree(layout)
            else { return }
            let store = snapshot()
            try withExtendedLifetime(lock) {
                // Another update may have ended meanwhile.
                guard let generation = try store.installed else { return }
                try Assessment(of: generation, in: store).remember()
            }
        } catch { if !Files.isDenied(error) { warning { throw error } } }
    }

    /// Files made from the release, and files that got its content, were read and checked on the way.
    private func remember(_ plan: Plan) throws {
        let store = snapshot()
        guard let generation = try store.installed else { return }
        let checked = plan.effects.filter { effect in
            switch effect.change {
            case .create, .replace: true
            default: false
            }
        }
        try Assessment(of: generation, in: store).remember(checked: Set(checked.compactMap(\.database)))
    }

    /// Lets steps that are not built in tidy up.
    private func tidy(_ ending: Ending, _ made: Planner.PreparedPlan, _ transaction: Transaction) {
        warning {
            let performer = Performer(
                transaction: transaction, plan: made.plan, inodes: [:], installed: made.context.installed,
                release: made.context.release)
            let applier = Applier(
                transaction: transaction, plan: made.plan, steps: try steps(made.store), context: made.context,
                performer: performer, tell: watcher.tell)
            for text in applier.clean(ending) { watcher.tell(.warning(text)) }
        }
    }

    /// Tells consumers of a failure and removes what was staged, unless that is still needed; gives the error to tell.
    private func leave(
        _ transaction: Transaction, _ calls: ConsumerCalls, _ error: any Error, because reason: any Error
    ) -> any Error {
        if (reason as? MoultError)?.outcome == .stuck { return reason }
        _ = calls.reload(.undone, all: Self.wasUndone(reason))
        do {
            if let unrested = error as? Pipeline.JournalModeNotRestored { throw unrested.second }
            try transaction.remove()
        } catch let second {
            // The next command cleans up. But the decision's record may be there although its sync failed, and then the
            // next command would not clean up but go on.
            let isDecided = (try? transaction.journal.read().decided) != .some(nil)
            if !Self.wasUndone(reason), isDecided { return Self.undecided(reason, second) }
            watcher.tell(.warning("\(second)"))
        }
        return reason
    }

    /// Whether the update had begun to change what is in service: then its outcome alone does not tell.
    private static func wasUndone(_ reason: any Error) -> Bool {
        guard let reason = reason as? MoultError else { return false }
        return reason.code == .undone || reason.outcome == .undone
    }

    private static func isInUse(_ error: any Error) -> Bool {
        guard let error = error as? MoultError, error.outcome == .busy else { return false }
        return error.code == .inUse || error.cause.map(isInUse) ?? false
    }

    private static func undecided(_ reason: any Error, _ second: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the update failed, but the next command may finish it",
            why: "\(reason); and then: \(second)",
            now: "Nothing has changed yet. Fix that, then finish it: moult recover, or drop it: moult recover --undo",
            cause: reason)
    }

    /// Takes a release out of service again that a consumer cannot do without reloading; gives the error to tell.
    private func withdraw(_ plan: Plan, because failure: ConsumerCalls.Failure) -> MoultError {
        let consumer = "the consumer \(failure.consumer.name)"
        guard plan.purpose == .update, let from = plan.from else {
            return MoultError(
                .consumer, .stuck, what: "\(plan.to.version) is installed, but \(consumer) did not reload",
                why: failure.reason,
                now: plan.from == nil
                    ? "No earlier release is kept to roll back to. Fix that program and start it."
                    : "Fix that program and start it, or go on: moult apply RELEASE")
        }
        do {
            let reason = "\(consumer) did not reload: \(failure.reason)"
            let store = snapshot()
            // The release that was installed a moment ago returns, even if the operator has put it on hold.
            _ = try execute(in: store, settled: [], { _ in }) {
                try planner($0).rollback(to: from.generation, reason: reason, force: true)
            }
        } catch {
            return MoultError(
                .consumer, .stuck, what: "\(consumer) could reload neither \(plan.to.version) nor the previous release",
                why: "\(failure.reason); \(error)", now: "To see the installed release: moult status", cause: error)
        }
        return MoultError(
            .consumer, .undone, what: "the update to \(plan.to.version) was rolled back: \(consumer) did not reload",
            why: failure.reason, now: "Fix that program, then remove the hold: moult unhold \(plan.to.version)")
    }

    /// A failure after the outcome is certain does not change it: it is reported, and the next command tidies up.
    func warning(_ body: () throws -> Void) {
        do { try body() } catch { watcher.tell(.warning("\(error)")) }
    }

    private func record(_ plan: Plan, _ stopwatch: Stopwatch, failure: (any Error)?, _ result: Result? = nil) throws {
        let outcome: History.Entry.Outcome =
            switch (failure as? MoultError)?.outcome {
            case nil where failure == nil: .done
            case _ where failure.map(Self.wasUndone) ?? false: .undone
            case .stuck: .stuck
            default: .failed
            }
        try History.append(
            History.Entry(
                transaction: plan.id, action: plan.action, from: plan.from?.generation,
                to: plan.to.generation,
                outcome: outcome, reason: failure.map(Self.reason) ?? plan.reset?.why ?? plan.rollbackReason,
                remedy: (failure as? MoultError)?.now, milliseconds: stopwatch.elapsed.microseconds / 1000,
                parts: stopwatch.parts, rows: result?.rows ?? [],
                kept: result?.kept.map { Files.name(of: $0.directory) } ?? [],
                holds: plan.hold == nil || failure != nil ? nil : try Holds.recorded(layout)),
            to: layout)
    }

    /// What happened and why.
    private static func reason(_ failure: any Error) -> String {
        guard let error = failure as? MoultError else { return "\(failure)" }
        return error.what + (error.why.map { ": \($0)" } ?? "")
    }
}

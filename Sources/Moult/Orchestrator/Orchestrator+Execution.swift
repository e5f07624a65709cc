internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

extension Orchestrator {
    /// Runs an update, and retries it without patches that turn out not to fit, if necessary with the bundle alone.
    func avoidingUnfitPatches<R>(_ store: StoreSnapshot, _ body: (Planner) throws -> R) throws -> R {
        var planner = try planner(store)
        while true {
            do { return try body(planner) } catch let fault as PatchFault {
                if fault.unfit.isSubset(of: planner.avoided) { throw fault.error }
                planner.avoided.formUnion(fault.unfit)
                let why = fault.error.why.map { ": \($0)" } ?? ""
                watcher.tell(.warning("\(fault.error.what)\(why); the update continues without this patch"))
            }
        }
    }

    /// Plans and runs the update. Waits for programs that have a database locked, and retries if a program uses a database at
    /// the wrong moment, until the time limit in the settings. With `forceAfter`, then ends the processes that still have one
    /// locked, and tries once more.
    func execute(
        in store: StoreSnapshot, recovered: [CrashRecovery.Result], stopwatch: Stopwatch = Stopwatch(),
        _ announce: (Plan) throws -> Void, _ prepare: (StoreSnapshot) throws -> Planner.PreparedPlan
    ) throws -> Result {
        var wait = Wait(seconds: try store.settings.waitForApps, isLast: consumers.forceAfter == nil)
        if let limit = consumers.forceAfter { wait.seconds = min(limit, wait.seconds) }
        var (store, announced) = (store, Plan?.none)
        while true {
            do {
                return try attempt(in: store, recovered: recovered, stopwatch: stopwatch, wait, prepare) { plan in
                    if announced == nil { try announce(plan) }
                    announced = plan
                }
            } catch is StoreChanged {
                try watcher.stopIfAsked()
            } catch let error as MoultError where Self.isInUse(error) {
                let blockers = Blockers(places: try Self.writtenPlaces(announced, store))
                if wait.isLast {
                    throw blockers.named(
                        in: error, offersForce: consumers.forceAfter == nil && announced?.purpose != .reset)
                }
                try blockers.end(because: error, watcher)
                wait = Wait(seconds: try store.settings.waitForApps, isLast: true)
            }
            store = snapshot()
        }
    }

    private struct Wait {
        var seconds: Int
        /// Whether the update then fails, because the processes are not ended.
        let isLast: Bool
        let start = ContinuousClock.now
        var isOver: Bool { ContinuousClock.now >= start + .seconds(seconds) }
    }

    /// Returns the databases that an update writes to, or all that it may write to if it could not be planned.
    private static func writtenPlaces(_ plan: Plan?, _ store: StoreSnapshot) throws -> [String] {
        if let plan {
            return plan.effects.map(\.change.traits).filter { $0.handling == .written }.flatMap(\.paths).map(
                store.layout.file)
        }
        return try store.installed?.manifest.databases.filter { !$0.kind.isSealed }.map(store.place) ?? []
    }

    /// A program used a database at the wrong moment. Nothing has changed, and the update can be retried.
    private struct StoreChanged: Error {}

    private func attempt(
        in store: StoreSnapshot, recovered: [CrashRecovery.Result], stopwatch: Stopwatch, _ wait: Wait,
        _ prepare: (StoreSnapshot) throws -> Planner.PreparedPlan, _ announce: (Plan) throws -> Void
    ) throws -> Result {
        let prepared = try waitingForApps(store, atMost: wait.seconds) { try prepare(store) }
        let plan = prepared.plan
        guard plan.changesStore else { return Result(recovered: recovered, generation: plan.to.generation) }
        try announce(plan)
        for warning in plan.warnings { watcher.tell(.warning(warning)) }
        var transaction = Transaction(layout: layout, id: plan.id)
        transaction.patience = wait.seconds
        // Files that existed before do not belong to this update and must not be removed.
        guard Transaction.isID(plan.id), try Files.facts(transaction.directory) == nil else {
            throw MoultError(
                .stale, .stale, what: "the plan \(plan.id) cannot be executed",
                why: "a plan is executed only once, and \(transaction.directory) already exists",
                now: "Create another plan with: \(moult: "plan", "--output", "FILE", "RELEASE")")
        }
        let calls = ConsumerCalls(
            transaction, plan, among: try allConsumers(prepared.store), forceAfter: consumers.forceAfter,
            watcher: watcher)
        let execution = Execution(
            prepared, in: transaction, steps: try steps(prepared.store), watcher: watcher, stopwatch: stopwatch)
        let outcome: Execution.Outcome
        do { outcome = try execution.run(calling: calls) } catch {
            let reason = (error as? Execution.NotReleased)?.reason ?? error
            if (reason as? MoultError)?.outcome != .stuck {
                execution.clean(Self.wasUndone(reason) ? .undone : .failed)
            }
            let reported = abandon(transaction, calls, error, because: reason)
            // An update with consumers is not retried, because they are called only once.
            if Self.isInUse(reported), try Files.facts(transaction.directory) == nil {
                if plan.calls.isEmpty, !wait.isOver { throw StoreChanged() }
                // The next attempt follows at once.
                if !wait.isLast { throw reported }
            }
            // A patch that does not fit is not a failure: the update is retried without it.
            if !(reason is PatchFault) { warning { try record(plan, stopwatch, failure: reason) } }
            throw reported
        }
        var result = Result(plan: plan, recovered: recovered, generation: plan.to.generation)
        (result.rows, result.pending) = (outcome.rows, outcome.postponed)
        var unrecorded: (any Error)?
        do {
            try Removable.keepDisplaced(by: plan, transaction)
            result.kept = try QuarantineShelf(layout: layout, settings: prepared.store.settings).sets(of: plan.id)
        } catch { unrecorded = error }
        // The update is complete without this record, which only saves a check later.
        warning { try remember(plan) }
        execution.clean(.done)
        if !plan.calls.isEmpty { stopwatch.begin(.apply, "reload") }
        let failures = calls.reload(.installed, all: true)
        result.notReloaded = failures.map(\.consumer.name)
        // Only now, so that the history has the time of the reload. After a crash in it, recovery calls the consumers again.
        if unrecorded == nil { do { try record(plan, stopwatch, failure: nil, result) } catch { unrecorded = error } }
        if let unrecorded { throw Self.unrecorded(plan, unrecorded) }
        warning { try transaction.remove() }
        if let failure = failures.first(where: \.consumer.isFatal) { throw withdraw(plan, stopwatch, because: failure) }
        warning {
            let settings = try prepared.store.settings
            result.laggards = try Laggard.wait(
                layout, seconds: consumers.waitForReaders ?? settings.waitForReaders, shouldStop: watcher.shouldStop)
            if plan.from != nil { result.outdated = try Holders.outdated(in: snapshot(), except: plan.to.generation) }
            let shelf = QuarantineShelf(layout: layout, settings: settings)
            result.collected = try Collector(layout: layout, settings: settings).collect(by: plan.id)
            if !result.collected.removed.isEmpty { result.kept = try shelf.sets(of: plan.id) }
            try shelf.collectRows()
            result.quarantine = try shelf.enforceBudget()
            result.kept.removeAll { kept in result.quarantine.removed.contains { $0.id == kept.id } }
        }
        return result
    }

    /// Plans again while a program has a database locked against readers, for as long as the settings allow.
    func waitingForApps(
        _ store: StoreSnapshot, atMost limit: Int? = nil, _ plan: () throws -> Planner.PreparedPlan
    ) throws -> Planner.PreparedPlan {
        var backoff = Backoff(.seconds(try limit ?? store.settings.waitForApps))
        while true {
            do { return try watcher.stoppingStatements(plan) } catch let error as MoultError {
                guard error.code == .databaseBusy, backoff.pause() else { throw error }
                try watcher.stopIfAsked()
            }
        }
    }

    /// Records the databases that the update created or replaced as checked, because the update has read their files
    /// completely.
    private func remember(_ plan: Plan) throws {
        let store = snapshot()
        guard let generation = try store.installed else { return }
        let checked = plan.effects.filter(\.change.traits.isStaged)
        try Assessment(of: generation, in: store).remember(checked: Set(checked.compactMap(\.database)))
    }

    /// Notifies consumers of a failure and removes staged files unless they are still needed; returns the error to report.
    private func abandon(
        _ transaction: Transaction, _ calls: ConsumerCalls, _ error: any Error, because reason: any Error
    ) -> any Error {
        if (reason as? MoultError)?.outcome == .stuck { return reason }
        _ = calls.reload(.undone, all: Self.wasUndone(reason))
        do {
            if let notReleased = error as? Execution.NotReleased { throw notReleased.second }
            try transaction.remove()
        } catch let second {
            // The next command cleans up. However, the record of the decision may exist although its sync failed; the next
            // command would then finish the update instead.
            let isDecided = (try? transaction.journal.read().decided) != .some(nil)
            if !Self.wasUndone(reason), isDecided { return Self.undecided(reason, second) }
            watcher.tell(.warning("\(second)"))
        }
        return reason
    }

    /// Returns whether the update had started to change the databases in service and was undone. The outcome alone does not
    /// show that.
    private static func wasUndone(_ reason: any Error) -> Bool {
        guard let reason = reason as? MoultError else { return false }
        return reason.code == .undone || reason.outcome == .undone
    }

    private static func isInUse(_ error: any Error) -> Bool {
        guard let error = error as? MoultError, error.outcome == .busy else { return false }
        return [.inUse, .databaseBusy].contains(error.code) || error.cause.map(isInUse) ?? false
    }

    private static func undecided(_ reason: any Error, _ second: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "the update failed, but the next command may finish it",
            why: "\(reason); the cleanup also failed: \(second)",
            now:
                "No database has changed yet. Fix the cause, then finish the update: \(moult: "recover"), or undo it: \(moult: "recover", "--undo")",
            cause: reason)
    }

    /// Returns the error for an update that is complete but not recorded. The next command records it, and needs its journal.
    private static func unrecorded(_ plan: Plan, _ error: any Error) -> MoultError {
        MoultError(
            .stuck, .stuck, what: "\(plan.to.version) is installed, but the \(plan.title) could not be recorded",
            why: "\(error)", now: "Fix the cause, then run: \(moult: "recover")", cause: error)
    }

    /// Rolls back a release that an essential consumer cannot reload. Returns the error to report.
    func withdraw(_ plan: Plan, _ stopwatch: Stopwatch, because failure: ConsumerCalls.Failure) -> MoultError {
        let consumer = "the consumer \(failure.consumer.name)"
        func stuck(_ what: String, _ why: String, now: Advice, cause: (any Error)? = nil) -> MoultError {
            let error = MoultError(.consumer, .stuck, what: what, why: why, now: now, cause: cause)
            warning { try record(plan, stopwatch, failure: error) }
            return error
        }
        let another: Advice =
            "Fix that program and restart it, or install another release: \(moult: "apply", "RELEASE")"
        guard plan.purpose == .update, let from = plan.from, from.generation != plan.to.generation else {
            return stuck(
                "\(plan.to.version) is installed, but \(consumer) did not reload", failure.reason,
                now: plan.from == nil
                    ? "No earlier release is kept to roll back to. Fix that program and restart it." : another)
        }
        do {
            let reason = "\(consumer) did not reload: \(failure.reason)"
            let store = snapshot()
            // A request to stop must not leave the apps with a release that they cannot load.
            var orchestrator = self
            orchestrator.watcher = Watcher(tell: watcher.tell)
            // The rollback goes to the previously installed release even if the operator has put that on hold.
            _ = try orchestrator.execute(in: store, recovered: [], { _ in }) {
                try planner($0).rollback(to: from.generation, reason: reason, force: true)
            }
        } catch {
            let why = "\(failure.reason); \(error.problem)"
            guard let error = error as? MoultError, error.code == .consumer, error.outcome == .stuck else {
                return stuck(
                    "\(plan.to.version) is installed, \(consumer) did not reload, and the rollback failed", why,
                    now: another, cause: error)
            }
            // The rollback was made, and has recorded this failure.
            return MoultError(
                .consumer, .stuck, what: "\(consumer) could reload neither \(plan.to.version) nor the previous release",
                why: why, now: "To see the installed release: \(moult: "status")", cause: error)
        }
        return MoultError(
            .consumer, .undone, what: "the update to \(plan.to.version) was rolled back: \(consumer) did not reload",
            why: failure.reason, now: "Fix that program, then remove the hold: \(moult: "unhold", "\(plan.to.version)")"
        )
    }

    /// Throws if a database does not have the content of an update that recovery has finished. Nothing is left to recover: what is wrong
    /// with the database is reported when the release is applied again.
    func requireComplete(_ recovered: [CrashRecovery.Result]) throws {
        for result in recovered {
            guard let left = result.left.first else { continue }
            let again = result.finished?.manifestPath.map { ["moult", "apply", $0] } ?? ["moult", "apply"]
            throw MoultError(
                .stuck, .stuck, what: "\(result.text), but \(left.place) stays as it is", why: left.error.problem,
                now: "When the cause is gone, apply the release again: \(run: again)", cause: left.error)
        }
    }

    /// If an essential consumer cannot reload an update that recovery has finished, rolls it back and throws the error, as if
    /// no crash had occurred.
    func withdrawFailed(_ recovered: [CrashRecovery.Result]) throws {
        for result in recovered {
            guard let failure = result.failed, let plan = result.finished else { continue }
            throw withdraw(plan, Stopwatch(), because: failure)
        }
    }

    private func record(_ plan: Plan, _ stopwatch: Stopwatch, failure: (any Error)?, _ result: Result? = nil) throws {
        let outcome: History.Entry.Outcome =
            switch (failure as? MoultError)?.outcome {
            case nil where failure == nil: .done
            case _ where failure.map(Self.wasUndone) ?? false: .undone
            case .stuck: .stuck
            default: .failed
            }
        let reason = failure.map(\.problem) ?? plan.reset?.why ?? plan.rollbackReason
        var entry = History.Entry(of: plan, outcome, reason: reason)
        entry.remedy = (failure as? MoultError)?.now?.description
        (entry.milliseconds, entry.parts) = (stopwatch.elapsed.microseconds / 1000, stopwatch.parts)
        (entry.rows, entry.kept) = (result?.rows ?? [], result?.kept.map(\.id) ?? [])
        entry.holds = plan.hold == nil || failure != nil ? nil : try Holds.recorded(layout)
        try History.append(entry, to: layout)
    }

    /// Turns SQLite errors about a damaged database into refusals, like the faults that the checks find.
    /// Errors after the decision already have a different outcome, and stay unchanged.
    func refusingDamage<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as MoultError
            where error.code == .databaseCorrupt && error.outcome == .failed
        {
            var refusal = error
            refusal.outcome = .refused
            if refusal.now == nil {
                refusal.now =
                    "Nothing was changed. To check the database: "
                    + "\(run: ["moult", "verify"] + (damagedDatabase(error).map { [$0] } ?? []))"
            }
            throw refusal
        }
    }

    private func damagedDatabase(_ error: MoultError) -> String? {
        // The name is additional information: if the store cannot be read, that must not hide the error.
        let store = snapshot()
        guard let path = error.sqlite?.path, let installed = try? store.installed else { return nil }
        return installed.manifest.databases.first { (try? store.place(of: $0)) == path }?.name
    }
}

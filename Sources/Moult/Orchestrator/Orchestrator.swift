internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
package import StepKit

/// The operations on a store. With few exceptions, an operation that writes takes the lock and recovers interrupted work first.
package struct Orchestrator: Sendable {
    package let layout: StoreLayout
    /// The steps of the command or app. `steps` adds those from the store's settings.
    private let ownSteps: StepSet
    package internal(set) var watcher: Watcher
    package let consumers: ConsumerOptions
    /// What the command in `tracing` learns from its feed.
    var traffic = Traffic()

    package init(
        root: String, steps: StepSet, watcher: Watcher = Watcher(), consumers: ConsumerOptions = ConsumerOptions()
    ) throws {
        layout = try StoreLayout(root: root)
        ownSteps = steps
        self.watcher = watcher
        self.consumers = consumers
    }

    func snapshot() -> StoreSnapshot { StoreSnapshot(layout) }

    func planner(_ store: StoreSnapshot) throws -> Planner {
        Planner(
            store: store, steps: try steps(store), inProcess: consumers.inProcess,
            forcesRelease: consumers.forceAfter != nil)
    }

    func steps(_ store: StoreSnapshot) throws -> StepSet {
        try store.checkSettings()
        return try ownSteps.adding(store.settings.steps)
    }

    package struct Result: Sendable {
        /// The applied plan; nil if there was nothing to do.
        package var plan: Plan?
        /// The plans applied before, if the command installed several releases.
        package var earlierPlans: [Plan] = []
        package var recovered: [CrashRecovery.Result] = []
        package var collected = Collector.Report()
        package var quarantine = QuarantineShelf.Report()
        /// What happened to the rows of each database that was replaced or migrated.
        package var rows: [RowFate] = []
        package var kept: [QuarantineShelf.Set] = []
        package var generation: String?
        /// Caches that do not match the release but stay, because processes have them open.
        package var pending: [Plan.Pending] = []
        /// Readers that still use an earlier generation.
        package var laggards: [Laggard] = []
        /// The consumers that did not reload, although the update was made.
        package var notReloaded: [String] = []
        /// The release that was only downloaded, and when it will be installed.
        package var downloaded: Version?
        package var window: TimeWindow?
        /// Processes that have files of an older release open and do not follow the store.
        package var outdated: [Holders.OutdatedReader] = []
    }

    // MARK: queries

    /// Plans an update. A deep plan stages the release and tries everything, and takes as long as an update.
    package func plan(
        _ release: ReleaseFile, _ request: UpdateRequest = UpdateRequest(), deep: Bool = false
    ) throws -> Plan {
        try refusingDamage {
            let prepared = try planner(snapshot()).update(release, request)
            return try deep ? rehearse(prepared) : prepared.plan
        }
    }

    /// Returns the plan with what happens to each row; throws if the update would be refused.
    func rehearse(_ prepared: Planner.PreparedPlan) throws -> Plan {
        if !prepared.plan.changesStore { return prepared.plan }
        return try Files.withScratchDirectory { scratch in
            let transaction = Transaction(rehearsing: prepared.plan.id, in: scratch, layout)
            let execution = Execution(prepared, in: transaction, steps: try steps(prepared.store), watcher: watcher)
            defer { execution.clean(.failed) }
            return try execution.rehearse()
        }
    }

    package func planRollback(
        to wanted: String?, reason: String, force: Bool = false, consent: Consent = Consent()
    ) throws -> Plan {
        try refusingDamage {
            // The older release is kept, so the plan can say which rows do not fit its schema.
            try rehearse(planner(snapshot()).rollback(to: wanted, reason: reason, force: force, consent: consent))
        }
    }

    /// Returns whether a command that writes would have to recover interrupted work first.
    package func isUnfinished() throws -> Bool { try !Transaction.unfinished(layout).isEmpty }
    /// Returns the interrupted work that a command that writes would finish or undo first.
    package func unfinished() throws -> Unfinished { try Unfinished(in: layout) }

    /// Returns the free space on the store's file system, in bytes; nil if the file system is read-only.
    package func freeSpace() throws -> Int? {
        try MountedFileSystem.of(layout.root)?.isReadOnly == true ? nil : Files.freeSpace(layout.root)
    }

    // MARK: changes

    /// Installs a release. If it is already installed, only the findings about changed databases are recorded.
    /// `announce` gets the plan before anything starts; an error from it ends the update.
    package func update(
        _ release: ReleaseFile, _ request: UpdateRequest = UpdateRequest(), wait: Int = 0,
        announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        let store = snapshot()
        // A release that is already installed leaves no trace, except that a failure is over.
        // Only the planner reports consent to take over a database that the release does not have.
        if request.consent.takeOver.isEmpty, try NoOpCheck(store).isCurrent(release.bytes, of: release.path) {
            try rememberIfIdle(store)
            let result = Result(generation: try store.installedName)
            // Without a feed, no later attempt would show that a failure is over.
            guard Attempt.read(layout)?.failure != nil, try store.settings.feed == nil else { return result }
            return try tracing("apply", store, \.self) { _ in result }
        }
        return try tracing("apply", store, \.self) { _ in
            try avoidingUnfitPatches(store) { planner in
                do {
                    return try locked(wait, after: store) { store, recovered in
                        try execute(in: store, recovered: recovered, announce) {
                            try planner.locked($0).update(release, request)
                        }
                    }
                } catch  where Files.isDenied(error) {
                    // Without write permission, an update to the installed release does not fail: the store may be in a
                    // read-only image.
                    let store = snapshot()
                    guard try NoOpCheck(store).isCurrent(release.bytes, of: release.path, reading: true) else {
                        throw error
                    }
                    return Result(generation: try store.installedName)
                }
            }
        }
    }

    /// Records that a release on a server, or the store's own feed, could not be read. Does nothing for another path, which may be
    /// mistyped, or without a store.
    package static func recordFailure(of source: Address, _ error: any Error, in layout: StoreLayout) {
        // A store without readable settings cannot be updated at all.
        guard let settings = try? Settings.read(layout),
            source.withSecrets.contains("://") || settings.feed?.url.withSecrets == source.withSecrets
        else { return }
        if let attempt = Attempt.record("apply", error, took: .zero, notReloaded: nil, in: layout) {
            AttemptReport.send(attempt, in: layout, settings, Watcher())
        }
    }

    /// Runs a command that asks a feed or begins an update, and records how it ended. The report goes where the settings of `store`
    /// say.
    func tracing<R>(
        _ command: String, _ store: StoreSnapshot, _ result: (R) -> Result?, _ body: (Orchestrator) throws -> R
    ) throws -> R {
        let begun = ContinuousClock.now
        var orchestrator = self
        orchestrator.traffic = Traffic()
        func record(_ error: (any Error)?, _ notReloaded: [String]?) {
            let attempt = Attempt.record(
                command, error, took: .now - begun, notReloaded: notReloaded, bytes: orchestrator.traffic.bytes,
                rollout: orchestrator.traffic.rollout, in: layout)
            // Settings that cannot be read are reported by the command itself.
            if let attempt, let settings = try? store.settings {
                AttemptReport.send(attempt, in: layout, settings, watcher)
            }
        }
        do {
            let ended = try body(orchestrator)
            record(nil, result(ended).flatMap { $0.plan == nil ? nil : $0.notReloaded })
            return ended
        } catch {
            record(error, nil)
            throw error
        }
    }

    /// Rolls back to a kept generation, and places a hold on the release that was installed before.
    package func rollback(
        to wanted: String?, reason: String, force: Bool = false, consent: Consent = Consent(), wait: Int = 0,
        announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        try tracing("rollback", snapshot(), \.self) { _ in
            try locked(wait) { store, recovered in
                // If recovery has just finished the same rollback, nothing is left to do: another one would go back one more
                // release.
                if recovered.contains(where: { $0.finished?.purpose == .rollback }),
                    let installed = try store.installedName,
                    wanted.map({ RollbackTarget.isNamed($0, installed) }) ?? true
                {
                    return Result(recovered: recovered, generation: installed)
                }
                return try execute(in: store, recovered: recovered, announce) {
                    try planner($0).locked($0).rollback(to: wanted, reason: reason, force: force, consent: consent)
                }
            }
        }
    }

    package func apply(_ saved: Plan, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }) throws -> Result {
        let store = snapshot()
        return try tracing("apply", store, \.self) { command in
            try avoidingUnfitPatches(store) { planner in try command.apply(saved, by: planner, wait: wait, announce) }
        }
    }

    private func apply(
        _ saved: Plan, by planner: Planner, wait: Int, _ announce: (Plan) throws -> Void
    ) throws -> Result {
        // Downloads must complete before the store is locked. Everything that the plan relies on is verified again afterwards.
        let fetched = try saved.origin.map { try fetch($0, saved, by: planner, wait: wait) }
        return try locked(wait) { store, recovered in
            try saved.requireUpToDate(in: layout)
            return try execute(in: store, recovered: recovered, announce) { store in
                let planner = planner.locked(store)
                var prepared =
                    switch saved.purpose {
                    case .update:
                        if let fetched {
                            try planner.update(fetched, saved.updateRequest)
                        } else {
                            try planner.update(ReleaseFile(saved.manifestPath ?? ""), saved.updateRequest)
                        }
                    case .rollback:
                        try planner.rollback(
                            to: saved.to.generation, reason: saved.hold?.reason ?? "", force: saved.request.force,
                            consent: Consent(takeOver: saved.request.takeOver))
                    case .reset:
                        try planner.reset(
                            saved.reset?.database ?? "", why: saved.reset?.why ?? "", setsUserDataAside: true)
                    }
                try saved.requireSameEffects(prepared.plan)
                prepared.plan.id = saved.id
                prepared.plan.hold = saved.hold
                return prepared
            }
        }
    }

    /// Recovers interrupted work, even if earlier attempts failed. With `back`, undoes the work instead of finishing it.
    package func recover(back: Bool = false, wait: Int = 0) throws -> [CrashRecovery.Result] {
        try snapshot().checkSettings()
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let store = snapshot()
        let recovery = try recovery(store)
        if let generation = try Generation.repairPointer(layout) {
            watcher.tell(.warning("\(layout.current) was recreated: \(generation) is in service"))
        }
        let moved = try History.moveAway(layout)
        let results = try recovery.recover(ignoringLimit: true, back: back)
        try LeaseFile.refresh(layout)
        try rebuildHolds()
        // The history is repaired last, because `rebuildHolds` must still see whether it has unreadable lines.
        warning { try repairHistory(moved) }
        try withdrawFailed(results)
        try requireComplete(results)
        Attempt.forgetReloads(in: layout)
        return results
    }

    /// Finishes or undoes an interrupted update unless another process is doing so, for readers in an app that are about to open
    /// the databases. Leaves the update for `apply` or `recover` if its recovery would run a program or change a file outside the
    /// directory of the store, or if another user can change the store: readers find a complete release without recovery.
    func recoverIfIdle() throws {
        guard try isUnfinished(), try Custody(layout).allowsRecovery(), let lock = try StoreLock.takeIfFree(layout)
        else { return }
        defer { withExtendedLifetime(lock) {} }
        let recovery = try recovery(snapshot(), isForReader: true)
        if try recovery.isContained() { _ = try recovery.recover() }
    }

    private func recovery(_ store: StoreSnapshot, isForReader: Bool = false) throws -> CrashRecovery {
        CrashRecovery(
            store: store, steps: try steps(store), tell: watcher.tell, consumers: try allConsumers(store),
            forceAfter: consumers.forceAfter, isForReader: isForReader)
    }

    func allConsumers(_ store: StoreSnapshot) throws -> [Consumer] {
        try store.settings.consumers + consumers.inProcess
    }

    /// Removes old generations and, if `quarantineDays` is given, the quarantine sets that are at least so many days old, but
    /// those with user data only with `includingUserData`.
    package func clean(
        keep: Int? = nil, quarantineDays: Int? = nil, includingUserData: Bool = false, dry: Bool = false, wait: Int = 0
    ) throws -> Result {
        func clean(_ store: StoreSnapshot, _ recovered: [CrashRecovery.Result]) throws -> Result {
            let settings = try store.settings
            let shelf = QuarantineShelf(layout: layout, settings: settings)
            let id = Planner.newID()
            let collected = try Collector(layout: layout, settings: settings).collect(keep: keep, dry: dry, by: id)
            let kept = try shelf.sets(of: id)
            let quarantine = try quarantineDays.map {
                try shelf.clean(olderThan: $0, includingUserData: includingUserData, dry: dry)
            }
            return Result(recovered: recovered, collected: collected, quarantine: quarantine ?? .init(), kept: kept)
        }
        return try dry ? clean(snapshot(), []) : locked(wait, clean)
    }

    /// Pins the digest of a step's program. Does not recover an interrupted update first, because recovery may need this step.
    package func trustStep(_ name: String, sha256: String, wait: Int = 0) throws {
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        guard let step = try Settings.written(layout).steps.first(where: { $0.name == name }) else {
            throw MoultError(
                .settings, what: "\(layout.settings) has no step \(name)", now: "To list the steps: \(moult: "steps")")
        }
        var trusted = TrustedSteps(layout)
        try trusted.pin(name, sha256: sha256, insteadOf: step.sha256, in: layout)
    }

    // MARK: parts

    /// Takes the store's lock, recovers interrupted work, and runs `body` with the resulting state of the store. `before` is the
    /// state that the command has already read, if any.
    func locked(
        _ wait: Int, after before: StoreSnapshot? = nil,
        _ body: (StoreSnapshot, [CrashRecovery.Result]) throws -> Result
    ) throws -> Result {
        // The lock's file is not created in a store whose settings are refused.
        try (before ?? snapshot()).checkSettings()
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        let store = snapshot()
        let recovery = try recovery(store)
        let moved = try History.moveAway(layout)
        return try refusingDamage {
            let recovered = try recovery.recover()
            if moved != nil { warning { try repairHistory(moved) } }
            try LeaseFile.refresh(layout)
            try withdrawFailed(recovered)
            try requireComplete(recovered)
            return try body(recovered.isEmpty ? store : snapshot(), recovered)
        }
    }

    /// Records the result of checking changed databases, so that the next check need not open them. Does nothing without write
    /// permission, or while an update runs.
    func rememberIfIdle(_ store: StoreSnapshot) throws {
        guard let generation = try store.installed else { return }
        do {
            guard try Assessment(of: generation, in: store).isOutdated(), let lock = try StoreLock.takeIfFree(layout)
            else { return }
            let store = snapshot()
            try withExtendedLifetime(lock) {
                // Another update may have ended in the meantime.
                guard let generation = try store.installed else { return }
                try Assessment(of: generation, in: store).remember()
            }
        } catch { if !Files.isDenied(error) { warning { throw error } } }
    }

    /// Runs work that cannot change the outcome any more: a failure is reported as a warning, and the next command cleans up.
    func warning(_ body: () throws -> Void) { do { try body() } catch { watcher.tell(.warning("\(error)")) } }
}

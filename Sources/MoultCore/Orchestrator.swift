internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// Everything that can be done to a store: each operation that writes takes the lock and settles first.
package struct Orchestrator: Sendable {
    package let layout: StoreLayout
    package let steps: StepSet
    package let watcher: Watcher

    package init(root: String, steps: StepSet, watcher: Watcher = Watcher()) throws {
        layout = try StoreLayout(root: root)
        self.steps = steps
        self.watcher = watcher
    }

    var planner: Planner { Planner(layout: layout, steps: steps) }

    /// What an update came to.
    package struct Result: Sendable {
        /// Nil if there was nothing to do.
        package var plan: Plan?
        package var settled: [Settler.Result] = []
        package var collected = Collector.Report()
        package var quarantine = QuarantineShelf.Report()
        /// What is installed now.
        package var generation: String?
    }

    // MARK: looking

    package func plan(_ request: UpdateRequest) throws -> Plan { try planner.update(request).plan }

    package func planRollback(to wanted: String?, reason: String) throws -> Plan {
        try planner.rollback(to: wanted, reason: reason).plan
    }

    /// Whether a command that writes would have something to settle first.
    package func isUnfinished() throws -> Bool { try !Settler.unfinished(layout).isEmpty }

    /// What a command that writes would have to settle first.
    package func unfinished() throws -> Unfinished { try Unfinished(in: layout) }

    /// The bytes that are free where the store is.
    package func freeSpace() throws -> Int { try Files.freeSpace(layout.root) }

    // MARK: changing

    /// Brings a release in; nothing is locked or written if it is installed already.
    ///
    /// `announce` gets the plan before anything is begun; an error from it ends the update.
    package func update(
        _ request: UpdateRequest, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        if let bytes = try Files.read(request.manifest, limit: Manifest.largest),
            try Freshness.isCurrent(bytes, in: layout)
        {
            return Result(generation: try Generation.currentName(layout))
        }
        return try locked(wait) { try execute(planner.update(request), settled: $0, announce) }
    }

    /// Goes back to a kept generation, and puts the present release on hold.
    package func rollback(
        to wanted: String?, reason: String, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }
    ) throws -> Result {
        try locked(wait) { try execute(planner.rollback(to: wanted, reason: reason), settled: $0, announce) }
    }

    /// Does exactly a saved plan, once.
    package func apply(_ saved: Plan, wait: Int = 0, announce: (Plan) throws -> Void = { _ in }) throws -> Result {
        // What a feed brought must be here before the store is locked; what the plan relies on is proven again then.
        let fetched = try saved.origin.map { try fetch($0, saved, wait: wait) }
        return try locked(wait) { settled in
            try SavedPlan(plan: saved, layout: layout).proveFresh()
            var made =
                switch saved.purpose {
                case .update:
                    if let fetched {
                        try planner.update(fetched, saved.updateRequest)
                    } else {
                        try planner.update(saved.updateRequest)
                    }
                case .rollback: try planner.rollback(to: saved.to.generation, reason: saved.hold?.reason ?? "")
                case .reset:
                    try planner.reset(
                        saved.reset?.database ?? "", why: saved.reset?.why ?? "", setsUserDataAside: true)
                }
            try SavedPlan(plan: saved, layout: layout).proveSame(made.plan)
            made.plan.id = saved.id
            made.plan.hold = saved.hold
            return try execute(made, settled: settled, announce)
        }
    }

    /// Settles what is unfinished, however often that was tried; back instead of forward if asked.
    package func recover(back: Bool = false, wait: Int = 0) throws -> [Settler.Result] {
        _ = try Settings.read(layout)
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        return try Settler(layout: layout, steps: steps, tell: watcher.tell).settle(patiently: true, back: back)
    }

    /// Settles what is unfinished if nobody else is at work; for readers that are about to open the databases.
    package func settleIfIdle() throws {
        guard try isUnfinished(), let lock = try FileLock.take(layout.lock, .exclusive) else {
            return
        }
        defer { withExtendedLifetime(lock) {} }
        _ = try Settler(layout: layout, steps: steps, tell: watcher.tell).settle()
    }

    /// Removes old generations and, if days are given, what has been in quarantine for longer.
    package func clean(
        keep: Int? = nil, quarantineDays: Int? = nil, includingUserData: Bool = false, dry: Bool = false, wait: Int = 0
    ) throws -> Result {
        let settings = try Settings.read(layout)
        func clean(_ settled: [Settler.Result]) throws -> Result {
            let shelf = QuarantineShelf(layout: layout, settings: settings)
            let collected = try Collector(layout: layout, settings: settings).collect(keep: keep, dry: dry)
            let quarantine = try quarantineDays.map {
                try shelf.clean(olderThan: $0, includingUserData: includingUserData, dry: dry)
            }
            return Result(settled: settled, collected: collected, quarantine: quarantine ?? .init())
        }
        return try dry ? clean([]) : locked(wait, clean)
    }

    /// Puts a release or all of them on hold, or lets them in again with nil; gives the hold that was there before.
    package func hold(_ hold: Settings.Hold?, wait: Int = 0) throws -> Settings.Hold? {
        var before = try Settings.read(layout).hold
        if before == nil, hold == nil { return nil }
        _ = try locked(wait) { settled in
            before = try Settings.read(layout).hold
            try Settings.rewrite(layout, "hold", hold?.json)
            return Result(settled: settled)
        }
        return before
    }

    // MARK: parts

    func locked(_ wait: Int, _ body: ([Settler.Result]) throws -> Result) throws -> Result {
        _ = try Settings.read(layout)
        let lock = try StoreLock.take(layout, wait: wait, stop: watcher.stopIfAsked)
        defer { withExtendedLifetime(lock) {} }
        return try body(Settler(layout: layout, steps: steps, tell: watcher.tell).settle())
    }

    func execute(
        _ made: Planner.Made, settled: [Settler.Result], _ announce: (Plan) throws -> Void
    ) throws -> Result {
        let plan = made.plan
        guard plan.changesStore else { return Result(settled: settled, generation: plan.to.generation) }
        try announce(plan)
        for warning in plan.warnings { watcher.tell(.warning(warning)) }
        let transaction = Transaction(layout: layout, id: plan.id)
        let start = ContinuousClock.now
        do {
            try Pipeline(transaction: transaction, steps: steps, watcher: watcher, made: made).run()
        } catch {
            warning { try record(plan, since: start, failure: error) }
            // What failed before the decision has been removed, or is left for the next command to bring to rest.
            if (error as? MoultError)?.outcome == .undone { warning { try transaction.remove() } }
            throw error
        }
        var result = Result(plan: plan, settled: settled, generation: plan.to.generation)
        if plan.purpose == .update {
            warning {
                try Seen.note(
                    sequence: made.context.release.sequence,
                    anew: plan.request.allowDowngrade || plan.request.follow == .match, layout)
            }
        }
        warning {
            if let hold = plan.hold { try Settings.rewrite(layout, "hold", hold.json) }
            try transaction.journal.end("committed")
            try record(plan, since: start, failure: nil)
            try transaction.remove()
            let settings = try Settings.read(layout)
            result.collected = try Collector(layout: layout, settings: settings).collect()
            result.quarantine = try QuarantineShelf(layout: layout, settings: settings).enforceLimit()
        }
        return result
    }

    /// What fails after the outcome is certain does not change it: it is told, and the next command tidies up.
    func warning(_ body: () throws -> Void) {
        do { try body() } catch { watcher.tell(.warning("\(error)")) }
    }

    private func record(_ plan: Plan, since start: ContinuousClock.Instant, failure: (any Error)?) throws {
        let outcome: History.Entry.Outcome =
            switch (failure as? MoultError)?.outcome {
            case nil where failure == nil: .done
            case .undone: .undone
            case .stuck: .stuck
            default: .failed
            }
        let elapsed = (ContinuousClock.now - start).components
        try History.append(
            History.Entry(
                transaction: plan.id, action: plan.action, from: plan.from?.generation,
                to: plan.to.generation,
                outcome: outcome, reason: failure.map(Self.reason) ?? plan.reset?.why,
                milliseconds: Int(elapsed.seconds) * 1000 + Int(elapsed.attoseconds / 1_000_000_000_000_000)),
            to: layout)
    }

    /// What happened and why; what to do about it was for whoever was there.
    private static func reason(_ failure: any Error) -> String {
        guard let error = failure as? MoultError else { return "\(failure)" }
        return error.what + (error.why.map { ": \($0)" } ?? "")
    }
}

internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import StepKit

/// Calls the consumers of one update: for a release, in reverse order of registration; for a reload, in order of registration.
package final class ConsumerCalls {
    let transaction: Transaction
    let plan: Plan
    private let consumers: [Consumer]
    private let forceAfter: Int?
    private let watcher: Watcher
    /// The consumers that were asked to release their databases, and must be asked to reload them whatever the outcome of the
    /// update.
    private(set) var released: [String]
    private var isReleased = false
    private var tables: [String: [String]] = [:]

    package struct Failure: Sendable, Equatable {
        package let consumer: Consumer
        package let reason: String
    }

    package init(
        _ transaction: Transaction, _ plan: Plan, among consumers: [Consumer], forceAfter: Int?,
        released: [String] = [], watcher: Watcher
    ) {
        (self.transaction, self.plan, self.forceAfter) = (transaction, plan, forceAfter)
        (self.watcher, self.released) = (watcher, released)
        self.consumers = plan.calls.compactMap { call in consumers.first { call.isOf($0) } }
    }

    /// Finds the changed tables; called while both the old and the new files exist.
    func findChangedTables(from installed: Manifest?, to release: Manifest) {
        let changed = ChangedTables(transaction: transaction, plan: plan, installed: installed, release: release)
        for name in Set(plan.calls.flatMap(\.databases).map(\.name)) { tables[name] = changed.of(name) }
    }

    // MARK: release

    /// Asks every affected consumer to release its databases. If one does not, throws (exit 75) before anything has changed;
    /// with `forceAfter`, the update continues instead.
    func release() throws {
        guard !isReleased else { return }
        isReleased = true
        let start = ContinuousClock.now
        let forced = forceAfter.map { start + .seconds($0) }
        for consumer in consumers.reversed() where plan.call(consumer)?.isReleased == true {
            try release(consumer, forced)
        }
        guard !released.isEmpty || forced != nil else { return }
        let longest = consumers.filter { released.contains($0.name) }.map(\.timeout).max() ?? 0
        for path in plan.exclusivePaths {
            try ExclusiveAccess(path: transaction.layout.file(path), stop: watcher.stopIfAsked)
                .wait(until: forced ?? start + .seconds(longest), mayKill: forced != nil) {
                    watcher.tell(.warning(Advice($0)))
                }
        }
    }

    private func release(_ consumer: Consumer, _ forced: ContinuousClock.Instant?) throws {
        let call = call(consumer, message(.release, for: consumer), until: forced)
        do {
            guard try consumer.means.channel.canRelease(call) else { return }
            // Not synced: a power failure ends the consumers as well, so none of them waits for a reload afterwards.
            try transaction.journal.releasing(consumer.name)
            released.append(consumer.name)
            try consumer.means.channel.release(call)
            watcher.tell(.consumer(consumer.name, .release))
        } catch {
            try watcher.stopIfAsked()
            let failure = refusal(consumer, error, call)
            guard forced != nil else { throw failure }
            watcher.tell(.warning("\(failure.what): \(failure.why ?? ""); the update continues"))
        }
    }

    private func refusal(_ consumer: Consumer, _ error: any Error, _ call: ConsumerCall) -> MoultError {
        let reason = error.problem
        // Processes of other users may have the files open, and may be invisible to this process.
        let all = (try? OpenFiles.holders(of: call.paths).map(\.description)) ?? []
        let holders = all.filter { !reason.contains($0) }
        let names = call.message.databases.map(\.name).joined(separator: ", ")
        let open = holders.isEmpty ? "" : "; in use by \(holders.joined(separator: ", "))"
        // An app kills no other process.
        let kill: Advice =
            ", or continue without it and kill the processes that block the update: --force-after SECONDS"
        return MoultError(
            .inUse, .busy, what: "the consumer \(consumer.name) does not release \(names)", why: "\(reason)\(open)",
            now: "Nothing was changed. Fix or stop the consumer and try again\(commandLine: kill, app: ".")",
            cause: error)
    }

    // MARK: reload

    /// Asks all consumers, or only those that were asked to release their databases, to reopen them. Returns those that failed.
    package func reload(_ outcome: ConsumerMessage.Outcome, all: Bool) -> [Failure] {
        consumers.compactMap { consumer in
            guard all || released.contains(consumer.name) else { return nil }
            do {
                let message = message(.reload, for: consumer, outcome)
                try consumer.means.channel.reload(call(consumer, message, until: nil))
                watcher.tell(.consumer(consumer.name, .reload))
                return nil
            } catch {
                let reason = error.problem
                watcher.tell(.warning("the consumer \(consumer.name) did not reload: \(reason)"))
                return Failure(consumer: consumer, reason: reason)
            }
        }
    }

    // MARK: parts

    private func call(
        _ consumer: Consumer, _ message: ConsumerMessage, until forced: ContinuousClock.Instant?
    ) -> ConsumerCall {
        let deadline = ContinuousClock.now + .seconds(consumer.timeout)
        // Consumers that released their databases learn the outcome, even if the user cancels with Ctrl-C.
        let mayStop = message.kind == .release
        return ConsumerCall(
            message: message, directory: transaction.layout.root,
            deadline: forced.map { min($0, deadline) } ?? deadline, wasReleased: released.contains(consumer.name),
            stop: { [watcher] in if mayStop { try watcher.stopIfAsked() } })
    }

    private func message(
        _ kind: ConsumerMessage.Kind, for consumer: Consumer, _ outcome: ConsumerMessage.Outcome? = nil
    ) -> ConsumerMessage {
        let isInstalled = outcome == .installed
        let all = plan.call(consumer)?.databases ?? []
        let databases = all.filter { kind == .reload || plan.requiresRelease($0.name) }.map {
            ConsumerMessage.Database(
                name: $0.name, kind: $0.kind, path: transaction.layout.file($0.path), tables: tables[$0.name])
        }
        return ConsumerMessage(
            kind: kind, store: transaction.layout.root, product: plan.product,
            current: isInstalled ? plan.to : plan.from,
            other: isInstalled ? plan.from : kind == .release ? plan.to : nil, outcome: outcome, databases: databases)
    }
}

extension Plan {
    func call(_ consumer: Consumer) -> Call? { calls.first { $0.isOf(consumer) } }
}

package struct ConsumerOptions: Sendable {
    /// The consumers in this process; they come after those in `moult.json`.
    var inProcess: [Consumer]
    /// After this many seconds, the update kills the processes that still prevent a file from being replaced.
    package var forceAfter: Int?
    /// For how many seconds a finished update waits for readers to leave the previous generation; nil uses the value in
    /// `moult.json`.
    package var waitForReaders: Int?

    package init(inProcess: [Consumer] = [], forceAfter: Int? = nil, waitForReaders: Int? = nil) {
        (self.inProcess, self.forceAfter, self.waitForReaders) = (inProcess, forceAfter, waitForReaders)
    }
}

internal import MoultBasics
package import MoultFiles
internal import StepKit
internal import Synchronization

/// Updates that have started but not ended: a process is running them, or a crash left them for recovery.
package struct Unfinished: Sendable, Equatable {
    package let updates: [String]
    /// The processes that hold the store's lock now, and so are running the updates.
    package let workers: [ProcessFacts]

    package var isEmpty: Bool { updates.isEmpty }

    package init(in layout: StoreLayout) throws {
        updates = try Transaction.unfinished(layout).map(Self.words)
        workers = updates.isEmpty ? [] : try LockHolders.of(layout.lock)
    }

    package var sentences: [String] {
        guard let worker = workers.first else { return updates.map { "\($0) is unfinished" } }
        return updates.map { "\($0) is running: \(worker.description)" }
    }

    package var findings: [Finding] {
        sentences.map { sentence in
            if workers.isEmpty {
                return Finding(.unfinished, .critical, sentence, advice: "Finish it with: \(moult: "recover")")
            }
            let why = "the other findings may soon be out of date"
            return Finding(.unfinished, .note, sentence, why: why, advice: Advice(moult: "status"))
        }
    }

    private static func words(_ transaction: Transaction) throws -> String {
        let plan: Plan?
        // Only the store's owner may read a transaction, and its record may be damaged, which `recover` reports. Others may still know
        // that it exists.
        do { plan = try transaction.journal.read().plan } catch { plan = nil }
        return plan?.words ?? "an update"
    }
}

extension Plan {
    var words: String { "\(title.hasPrefix("u") ? "an" : "a") \(title)" }
}

/// Whether this process is at an update between the record of its decision and its end. If the process ends then, the next command
/// finishes or undoes the update.
package enum OpenDecision {
    private static let count = Atomic(0)

    package static var exists: Bool { count.load(ordering: .relaxed) > 0 }
    static func begin() { count.add(1, ordering: .relaxed) }
    static func end() { count.subtract(1, ordering: .relaxed) }
}

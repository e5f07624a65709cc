package import MoultFiles
package import MoultStore
internal import StepKit

/// The updates that were begun and are not over: somebody is at work, or a crash left them to be settled.
package struct Unfinished: Sendable, Equatable {
    /// What they are, in words: `an update to 2.1.0`.
    package let updates: [String]
    /// Who has the store's lock at this moment, and so is at work on them.
    package let workers: [ProcessFacts]

    package var isEmpty: Bool { updates.isEmpty }

    package init(in layout: StoreLayout) throws {
        updates = try Transaction.unfinished(layout).map(Self.words)
        workers = updates.isEmpty ? [] : try LockHolders.of(layout.lock)
    }

    /// One sentence about each, without a full stop.
    package var sentences: [String] {
        guard let worker = workers.first else { return updates.map { "\($0) is unfinished" } }
        return updates.map { "\($0) is at work: \(worker.description)" }
    }

    private static func words(_ transaction: Transaction) throws -> String {
        let plan: Plan?
        do { plan = try transaction.journal.read().plan } catch {
            // Only the store's owner may look into a transaction; others may still know that there is one.
            if !Files.isDenied(error) { throw error }
            plan = nil
        }
        return plan?.words ?? "an update"
    }
}

extension Plan {
    /// What it is, in words: `an update to 2.1.0`, `a rollback to 2.0.0`.
    var words: String { "\(purpose == .update ? "an" : "a") \(title)" }
}

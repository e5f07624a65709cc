package import MoultFiles
internal import MoultLibc

/// A process that still reads an older generation: it has not moved its lease, so it has not reloaded.
package struct Laggard: Sendable, Equatable {
    package let process: ProcessFacts
    package let generation: String

    /// Waits until every lease is on the current generation; after the timeout, returns the processes with other leases. With a
    /// timeout of 0, no reader counts as late: readers of an older generation may finish undisturbed. A request to stop ends only
    /// the wait, because the update is complete.
    package static func wait(_ layout: StoreLayout, seconds: Int, shouldStop: () -> Bool) throws -> [Laggard] {
        guard seconds > 0 else { return [] }
        var backoff = Backoff(.seconds(seconds), longest: 20)
        while true {
            let laggards = try find(layout)
            if laggards.isEmpty || shouldStop() || !backoff.pause() { return laggards }
        }
    }

    /// Returns the processes with leases on other generations, except this process, which cannot reload while it waits here.
    private static func find(_ layout: StoreLayout) throws -> [Laggard] {
        let current = try Generation.currentName(layout)
        return try Generation.names(layout).filter { $0 != current }.flatMap { name in
            try LeaseFile.holders(of: name, layout).filter { $0.pid != ProcessFacts.ownPID }.map {
                Laggard(process: $0, generation: name)
            }
        }
    }

    package var text: String { "\(process.description) still reads generation \(generation)" }
}

internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// Stops the statement of a connection when the user cancels: SQLite does not call a progress handler while it creates
/// an index.
final class Stopper: Sendable {
    private let isOver = Atomic(false)

    /// Checks ten times a second on a separate thread, until `end`.
    init(_ interrupter: Interrupter, when shouldStop: @escaping @Sendable () -> Bool) throws {
        try Threads.detach { [self] in
            while !isOver.load(ordering: .relaxed) {
                // Interrupts repeatedly, because the statement may just have ended, and the next one started.
                if shouldStop() { interrupter.interrupt() }
                usleep(100_000)
            }
        }
    }

    func end() { isOver.store(true, ordering: .relaxed) }
}

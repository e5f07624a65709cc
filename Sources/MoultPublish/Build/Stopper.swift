internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import Synchronization

/// Stops the statement of a connection when the user cancels: SQLite calls no progress handler while it makes an index.
final class Stopper: Sendable {
    private let isOver = Atomic(false)

    /// Asks ten times a second on a separate thread, until `end`.
    init(_ interrupter: Interrupter, when shouldStop: @escaping @Sendable () -> Bool) throws {
        try Threads.detach { [self] in
            while !isOver.load(ordering: .relaxed) {
                // Again and again: what it hits may just have ended, and the next statement begun.
                if shouldStop() { interrupter.interrupt() }
                usleep(100_000)
            }
        }
    }

    func end() { isOver.store(true, ordering: .relaxed) }
}

internal import Synchronization

/// Several threads that share a list of jobs; the first error stops all of them.
package enum Workers {
    /// Runs the jobs 0 to `count - 1` once each, starting them in this order, and returns when all are done.
    ///
    /// `makeWorker` is called once on each thread, and returns the function that runs a job there.
    package static func run(
        jobs count: Int, threads: Int, makeWorker: @Sendable () throws -> (Int) throws -> Void
    ) throws {
        let board = Board()
        withoutActuallyEscaping(makeWorker) { makeWorker in
            let work: @Sendable () -> Void = {
                do {
                    let job = try makeWorker()
                    while let next = board.take(below: count) { try job(next) }
                } catch { board.fail(error) }
            }
            // This thread also runs jobs, and always waits for all other threads to end.
            var running: [Threads.Running] = []
            do {
                for _ in 1..<max(1, min(threads, count)) { running.append(try Threads.start(work)) }
            } catch { board.fail(error) }
            work()
            for thread in running { thread.wait() }
        }
        try board.check()
    }

    /// The number of the next job, and the first error.
    private final class Board: Sendable {
        private let state = Mutex<(next: Int, error: (any Error)?)>((0, nil))

        func take(below count: Int) -> Int? {
            state.withLock { state in
                guard state.error == nil, state.next < count else { return nil }
                defer { state.next += 1 }
                return state.next
            }
        }

        func fail(_ error: any Error) { state.withLock { state in state.error = state.error ?? error } }

        func check() throws { if let error = state.withLock({ $0.error }) { throw error } }
    }
}

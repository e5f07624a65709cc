internal import MoultLibc
internal import Synchronization

extension Threads {
    /// Runs asynchronous work and blocks this thread until the work is done or the time has passed. In the latter case, returns
    /// false, and the work continues.
    ///
    /// The work runs on a separate thread, unless it belongs to an actor with its own executor. It does not run in Swift's
    /// thread pool, because the waiting thread may be the last free thread of that pool.
    package static func wait(
        for time: Duration, _ body: @escaping @Sendable () async throws -> Void
    ) throws -> Bool {
        let executor = ThreadExecutor()
        let done = Signal(try Pipe())
        try detach { executor.run() }
        Task.detached(executorPreference: executor) {
            do {
                try await body()
                done.finish(nil)
            } catch { done.finish(error) }
            executor.finish()
        }
        return try done.wait(for: time)
    }

    /// Passes the result of the work to the waiting thread: an error or nil. Closing the pipe wakes that thread.
    private final class Signal: Sendable {
        private let output: Int32
        private let state: Mutex<State>

        private struct State: ~Copyable {
            var pipe: Pipe
            var error: (any Error)?
        }

        init(_ pipe: consuming Pipe) {
            output = pipe.output
            state = Mutex(State(pipe: pipe))
        }

        func finish(_ error: (any Error)?) {
            state.withLock {
                $0.error = error
                $0.pipe.closeInput()
            }
        }

        func wait(for time: Duration) throws -> Bool {
            let deadline = ContinuousClock.now + time
            var polls = [pollfd(fd: output, events: Int16(POLLIN), revents: 0)]
            // Keeps waiting if interrupted by a signal.
            while poll(&polls, 1, milliseconds(until: deadline)) <= 0 {
                if ContinuousClock.now >= deadline { return false }
            }
            if let error = state.withLock({ $0.error }) { throw error }
            return true
        }
    }

    /// Returns the timeout for `poll`: at most an hour; -1 without a deadline. It is rounded up, so that the deadline has
    /// passed when `poll` times out.
    static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        let left = (deadline - ContinuousClock.now).components
        let milliseconds = left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000
        return Int32(min(max(milliseconds + 1, 0), 3_600_000))
    }
}

/// Runs the jobs of one task on one thread.
private final class ThreadExecutor: TaskExecutor, @unchecked Sendable {
    // Unchecked: mutable state is accessed only inside the monitor.
    private let monitor = Monitor()
    private var jobs: [UnownedJob] = []
    private var isOver = false

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        monitor.locked { jobs.append(job) }
    }

    /// Called when no more jobs will follow.
    func finish() { monitor.locked { isOver = true } }

    /// Runs jobs as they arrive, until `finish` has been called and none are left.
    func run() {
        while let job = next() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func next() -> UnownedJob? {
        monitor.locked {
            monitor.wait { jobs.isEmpty && !isOver }
            return jobs.isEmpty ? nil : jobs.removeFirst()
        }
    }
}

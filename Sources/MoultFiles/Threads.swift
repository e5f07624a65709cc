internal import MoultLibc
internal import Synchronization

/// Starts separate threads, so that blocking calls never hold up a shared thread pool.
package enum Threads {
    private final class Work {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    /// A thread that must be joined.
    package struct Running {
        fileprivate let thread: pthread_t
        package func wait() { pthread_join(thread, nil) }
    }

    /// The number of processors.
    package static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Starts a thread; fails only if the system has no resources for another one.
    package static func start(_ body: @escaping @Sendable () -> Void) throws -> Running {
        var thread = pthread_t()
        #if DEBUG
            // System calls of a test's threads count as the test's own.
            let faults = Faults.current
            let work = Unmanaged.passRetained(Work { Faults.$current.withValue(faults, operation: body) })
        #else
            let work = Unmanaged.passRetained(Work(body))
        #endif
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw Errno(code).error("cannot start a thread")
        }
        return Running(thread: thread)
    }

    /// Starts a thread that is never joined.
    package static func detach(_ body: @escaping @Sendable () -> Void) throws { pthread_detach(try start(body).thread) }

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
        func run() { while let job = next() { job.runSynchronously(on: asUnownedTaskExecutor()) } }

        private func next() -> UnownedJob? {
            monitor.locked {
                monitor.wait { jobs.isEmpty && !isOver }
                return jobs.isEmpty ? nil : jobs.removeFirst()
            }
        }
    }
}

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

/// Work on a separate thread, and its result.
package final class BackgroundWork<Value: Sendable>: @unchecked Sendable {
    // Unchecked: one thread at a time uses `thread`; the lock protects everything else.
    private let result = Mutex<Result<Value, any Error>?>(nil)
    private var thread: Threads.Running?

    package init(_ body: @escaping @Sendable () throws -> Value) throws {
        thread = try Threads.start { [self] in
            let outcome = Result(catching: body)
            result.withLock { $0 = outcome }
        }
    }

    /// Throws if the work has failed already.
    package func check() throws { if case .failure(let error)? = result.withLock({ $0 }) { throw error } }

    package func wait() {
        thread?.wait()
        thread = nil
    }

    /// Waits for the thread, and returns its result.
    package func value() throws -> Value {
        wait()
        guard let outcome = result.withLock({ $0 }) else {
            throw Errno.invalid.error("a thread ended without a result")
        }
        return try outcome.get()
    }
}

/// A mutex with a condition variable: threads change shared state while holding the mutex, and can wait for other threads to
/// change it.
package final class Monitor: @unchecked Sendable {
    // Unchecked: mutexes and condition variables are designed for use by several threads.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        // With default attributes, neither call can fail on Linux.
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` while holding the mutex; afterwards, waiting threads check their conditions again.
    package func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body()
    }

    /// Waits, with the mutex released, until the condition is false. Call this only inside `locked`.
    package func wait(while condition: () throws -> Bool) rethrows {
        while try condition() { pthread_cond_wait(changed, mutex) }
    }
}

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

/// Pauses between the attempts of a process that waits for another one: short at first, then longer, until a deadline.
package struct Backoff {
    private let deadline: ContinuousClock.Instant
    private var microseconds: UInt32 = 1_000
    private let longest: UInt32

    /// Creates pauses of at most `longest` milliseconds.
    package init(_ limit: Duration, longest: UInt32 = 100) { self.init(until: .now + limit, longest: longest) }

    package init(until deadline: ContinuousClock.Instant, longest: UInt32 = 100) {
        (self.deadline, self.longest) = (deadline, longest * 1_000)
    }

    /// Sleeps briefly and returns true; after the deadline, returns false without sleeping.
    package mutating func pause() -> Bool {
        guard ContinuousClock.now < deadline else { return false }
        usleep(microseconds)
        microseconds = min(microseconds * 2, longest)
        return true
    }
}

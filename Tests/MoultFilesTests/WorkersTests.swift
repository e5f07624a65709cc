import MoultBasics
import Synchronization
import Testing

@testable import MoultFiles

/// Threads that share jobs, and the monitor with which threads wait for each other.
@Suite struct WorkersTests {
    private struct Broken: Error, Equatable { let job: Int }

    @Test(arguments: [(0, 4), (1, 4), (3, 8), (500, 4), (5, 1), (5, 0)])
    func `each job runs exactly once`(_ jobs: Int, _ threads: Int) throws {
        let done = Mutex<[Int]>([])
        let workers = Mutex(0)
        try Workers.run(jobs: jobs, threads: threads) {
            workers.withLock { $0 += 1 }
            return { job in done.withLock { $0.append(job) } }
        }
        #expect(done.withLock { $0.sorted() } == Array(0..<jobs))
        #expect(workers.withLock { $0 } <= max(1, min(jobs, threads)))
    }

    @Test func `one thread runs the jobs in order`() throws {
        let done = Mutex<[Int]>([])
        try Workers.run(jobs: 20, threads: 1) { { job in done.withLock { $0.append(job) } } }
        #expect(done.withLock { $0 } == Array(0..<20))
    }

    /// The first job waits until the second one has begun, so one thread alone could not finish.
    @Test func `two jobs run at the same time`() throws {
        let monitor = Monitor()
        let begun = Shared(0)
        try Workers.run(jobs: 2, threads: 2) {
            { _ in
                monitor.locked {
                    begun.value += 1
                    monitor.wait { begun.value < 2 }
                }
            }
        }
        #expect(begun.value == 2)
    }

    @Test func `the first error ends the work, and no later job starts`() {
        let done = Mutex<[Int]>([])
        #expect(throws: Broken(job: 3)) {
            try Workers.run(jobs: 100, threads: 1) {
                { job in
                    done.withLock { $0.append(job) }
                    if job >= 3 { throw Broken(job: job) }
                }
            }
        }
        #expect(done.withLock { $0 } == [0, 1, 2, 3])
    }

    @Test func `an error is thrown after all running jobs have ended`() {
        let monitor = Monitor()
        let (hasBegun, sum) = (Shared(false), Shared(0))
        #expect(throws: Broken(job: 0)) {
            try Workers.run(jobs: 2, threads: 2) {
                { job in
                    if job == 0 {
                        monitor.locked { monitor.wait { !hasBegun.value } }
                        throw Broken(job: 0)
                    }
                    monitor.locked { hasBegun.value = true }
                    for number in 1...100_000 { sum.value += number }
                }
            }
        }
        #expect(sum.value == 5_000_050_000)
    }

    @Test func `a worker that cannot be made is an error`() {
        #expect(throws: Broken(job: -1)) {
            try Workers.run(jobs: 5, threads: 2) { () throws -> (Int) throws -> Void in throw Broken(job: -1) }
        }
    }

    // MARK: Monitor

    @Test func `only one thread at a time is in a monitor`() throws {
        let monitor = Monitor()
        let total = Shared(0)
        try Workers.run(jobs: 4, threads: 4) { { _ in for _ in 0..<5000 { monitor.locked { total.value += 1 } } } }
        #expect(total.value == 20_000)
    }

    @Test func `an error in a monitor releases it`() {
        let monitor = Monitor()
        #expect(throws: Broken(job: 1)) { try monitor.locked { throw Broken(job: 1) } }
        #expect(monitor.locked { 7 } == 7)
    }

    /// Two threads take turns, each waiting for the other.
    @Test func `a change wakes the threads that wait for it`() throws {
        let monitor = Monitor()
        let turn = Shared(0)
        try Workers.run(jobs: 2, threads: 2) {
            { job in
                for round in 0..<200 {
                    monitor.locked {
                        monitor.wait { turn.value != 2 * round + job }
                        turn.value += 1
                    }
                }
            }
        }
        #expect(turn.value == 400)
    }
}

/// A value that only one thread uses at a time. Unchecked, because the monitors and the ends of the threads ensure this.
private final class Shared<Value>: @unchecked Sendable {
    var value: Value
    init(_ value: Value) { self.value = value }
}

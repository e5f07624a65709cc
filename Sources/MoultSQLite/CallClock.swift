import CSQLite
import MoultFiles
import MoultLibc
import Synchronization

/// When a connection's current call of SQLite began and when it last made progress. The thread of the connection writes the times,
/// and a watchdog reads them in its own thread.
final class CallClock: Sendable {
    let path: String
    let interrupter: Interrupter
    let stop: StatementStop?
    /// The limit on one call, in seconds: far more than an honest statement on a database of this size needs.
    let limit: Double

    /// In nanoseconds of `DeadlineClock`; 0 outside calls.
    private let began = Atomic<UInt64>(0)
    private let moved = Atomic<UInt64>(0)
    /// When the deadline of the statements ends; 0 without one.
    private let deadline = Atomic<UInt64>(0)
    private let expired = Atomic(false)

    init(path: String, interrupter: Interrupter, stop: StatementStop?, limit: Double) {
        (self.path, self.interrupter, self.stop, self.limit) = (path, interrupter, stop, limit)
    }

    func begin() {
        expired.store(false, ordering: .relaxed)
        began.store(DeadlineClock.now(), ordering: .relaxed)
    }
    func end() { began.store(0, ordering: .relaxed) }

    /// Notes that SQLite is between two instructions, or waits for a lock.
    func move(_ now: UInt64) { moved.store(now, ordering: .relaxed) }

    func setDeadline(_ end: UInt64?) { deadline.store(end ?? 0, ordering: .relaxed) }

    var isExpired: Bool { expired.load(ordering: .relaxed) }

    /// Returns whether the current call takes longer than `limit`. A process that only checks databases has a limit on its
    /// processor time instead.
    func isOver(_ now: UInt64) -> Bool {
        let began = began.load(ordering: .relaxed)
        guard began != 0, now > began, Double(now - began) / 1e9 > limit, DeadlineClock.processorTime() == nil else {
            return false
        }
        expired.store(true, ordering: .relaxed)
        return true
    }

    struct Call {
        /// How long SQLite has been in the same instruction, in nanoseconds.
        let idle: UInt64
        /// How long the call has exceeded its limit or the deadline of the statements, in nanoseconds; nil if it has not.
        let late: UInt64?
    }

    func call(_ now: UInt64) -> Call? {
        let began = began.load(ordering: .relaxed)
        guard began != 0, now >= began else { return nil }
        let last = max(began, moved.load(ordering: .relaxed))
        var late: UInt64?
        let deadline = deadline.load(ordering: .relaxed)
        if deadline != 0, now >= deadline { late = now - deadline }
        if isOver(now) { late = max(late ?? 0, now - began - UInt64(limit * 1e9)) }
        return Call(idle: now > last ? now - last : 0, late: late)
    }
}

extension Connection {
    func timed<R>(_ call: () -> R) -> R {
        guard let clock else { return call() }
        clock.begin()
        defer { clock.end() }
        return call()
    }

    /// Makes statements wait for locks as with `sqlite3_busy_timeout`, but not after a request to stop.
    func installBusyHandler() throws {
        guard clock != nil else {
            return try check(sqlite3_busy_timeout(try handle, busyTimeout), doing: "set the busy timeout of \(path)")
        }
        // Unretained: the connection removes the handler before it ends.
        let code = sqlite3_busy_handler(
            try handle,
            { context, count in
                guard let context else { return 0 }
                return Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().waitForLock(Int(count)) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        try check(code, doing: "set the busy timeout of \(path)")
    }

    /// Waits as long as SQLite itself does after so many attempts. Returns false if the time is over.
    private func waitForLock(_ attempts: Int) -> Bool {
        let pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100]
        let before = pauses.prefix(attempts).reduce(0, +) + max(0, attempts - pauses.count) * 100
        let pause = min(pauses[min(attempts, pauses.count - 1)], Int(busyTimeout) - before)
        guard pause > 0, stop?.isRequested != true else { return false }
        usleep(UInt32(pause) * 1000)
        clock?.move(DeadlineClock.now())
        return true
    }
}

/// Interrupts the statements of a connection from any thread. Does nothing once the connection is closed.
package final class Interrupter: Sendable {
    private let database: Mutex<UInt>

    init(_ handle: OpaquePointer?) { database = Mutex(UInt(bitPattern: handle)) }

    package func interrupt() {
        database.withLock { address in
            guard let handle = OpaquePointer(bitPattern: address) else { return }
            sqlite3_interrupt(handle)
        }
    }

    /// Forgets the handle before it is freed.
    func disarm() {
        database.withLock { $0 = 0 }
    }

    /// Stores the handle again, because it was not freed after all.
    func arm(_ handle: OpaquePointer) {
        database.withLock { $0 = UInt(bitPattern: handle) }
    }
}

/// Lets a caller stop running statements and `LongRead`s, because a release may have some that never end with a user's rows. It
/// applies to all connections that the body of `applying` opens, until the body returns: afterwards, a statement may belong to an
/// undo, or the decision was made.
package final class StatementStop: Sendable {
    @TaskLocal static var current: StatementStop?

    private let isAsked: @Sendable () -> Bool
    private let isOver = Atomic(false)

    package init(if isAsked: @escaping @Sendable () -> Bool) { self.isAsked = isAsked }

    var isRequested: Bool { !isOver.load(ordering: .relaxed) && isAsked() }

    package func applying<R>(_ body: () throws -> R) rethrows -> R {
        defer { isOver.store(true, ordering: .relaxed) }
        return try LongRead.stopping(if: { self.isRequested }) {
            try Self.$current.withValue(self, operation: body)
        }
    }
}

import CLinux
import CSQLite
import MoultBasics
import MoultLibc
import Synchronization

/// The state of a progress handler that stops a connection's statements after a time limit.
final class DeadlineWatch {
    let seconds: Double
    let end: UInt64
    private let processorEnd: UInt64
    private(set) var expired = false

    init(seconds: Double) {
        let whole = UInt64(max(0, min(seconds, 1e9)) * 1e9)
        self.seconds = seconds
        (end, processorEnd) = (DeadlineClock.now() + whole, (DeadlineClock.processorTime() ?? 0) + whole)
    }

    fileprivate func isOver(_ now: UInt64) -> Bool {
        if !expired, now >= end { expired = DeadlineClock.processorTime().map { $0 >= processorEnd } ?? true }
        return expired
    }

    static func error(on path: String, seconds: Double, cause: SQLiteError) -> MoultError {
        MoultError(
            .deadline, what: "a statement on \(path) was stopped after \(seconds) s",
            why: "it exceeded its time limit",
            now: "Allow more time, or find out why the database makes SQLite so slow.", cause: cause)
    }
}

/// The clock for all deadlines. If only processor time counts, the wall clock is checked first, because reading processor time
/// takes a system call.
package enum DeadlineClock {
    private static let countsProcessor = Atomic(false)

    /// Makes deadlines count this process's processor time from now on. Only for a process that does nothing but check
    /// databases.
    package static func countProcessorTime() { countsProcessor.store(true, ordering: .relaxed) }

    static func now() -> UInt64 { read(CLOCK_MONOTONIC) }

    /// Returns this process's processor time in nanoseconds; nil unless deadlines count it.
    static func processorTime() -> UInt64? {
        countsProcessor.load(ordering: .relaxed) ? read(CLOCK_PROCESS_CPUTIME_ID) : nil
    }

    /// Returns the time of a clock in nanoseconds. Reading these clocks never fails on Linux.
    private static func read(_ clock: clockid_t) -> UInt64 {
        var now = timespec()
        clock_gettime(clock, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}

extension Connection {
    /// Sets the deadline; nil removes it. A statement that it stops throws code E408. SQLite checks the deadline between two
    /// instructions of its virtual machine. A long instruction, such as the page scan of an integrity check or a call of a
    /// function, finishes first.
    func install(_ next: DeadlineWatch?) throws {
        watch = next
        clock?.setDeadline(next?.end)
        try installProgressHandler()
    }

    /// Installs a progress handler that stops a statement at its deadline, at the limit of a call, or at the request of a
    /// `StatementStop`.
    func installProgressHandler() throws {
        let handle = try handle
        // Unretained: the connection removes the handler before it ends.
        sqlite3_progress_handler(
            handle, watch == nil ? 10_000 : 100,
            { context in
                guard let context else { return 0 }
                let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                let now = DeadlineClock.now()
                connection.clock?.move(now)
                return connection.watch?.isOver(now) == true || connection.stop?.isRequested == true
                    || connection.clock?.isOver(now) == true ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque())
    }
}

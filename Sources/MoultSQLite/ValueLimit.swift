import CSQLite
import MoultBasics
import MoultFiles
import Synchronization

/// Limits on the memory that SQL in a database can use. A value that a file stores is never larger than the file, so an expression
/// that makes a much larger one only fills the memory.
package enum ValueLimit {
    /// The limit for a small database, in bytes.
    static let smallest: Int32 = 16 << 20
    /// The largest value is so many times as large as the file: hexadecimal text in another encoding has four times the size.
    private static let factor = 8

    static func of(_ file: Connection.OpenableFile) -> Int32 {
        heap.raise(for: file.size)
        return Int32(clamping: max(Int(smallest), factor * file.size))
    }

    private static let heap = Heap()

    /// Limits the memory of SQLite in this process, in proportion to the largest database that it opens. Only for a process that
    /// does nothing else with SQLite.
    package static func limitHeap() { heap.raise(for: 0, isFirst: true) }

    private final class Heap: Sendable {
        /// 0 without a limit.
        private let limit = Mutex<Int64>(0)
        private static let smallest: Int64 = 1 << 30
        /// SQLite refuses larger values.
        private static let largestValue: Int64 = 1_000_000_000

        func raise(for size: Int, isFirst: Bool = false) {
            limit.withLock { limit in
                let next = Self.smallest + 4 * min(Int64(size), Self.largestValue)
                guard isFirst || limit != 0, next > limit else { return }
                limit = next
                sqlite3_hard_heap_limit64(next)
            }
        }
    }
}

extension Connection {
    /// Limits the size of values. A connection to a larger database raises the limit of one that gets its values.
    func limitValues(to limit: Int32) throws {
        try setLimit(.length, to: limit)
        valueLimit = limit
    }

    /// Allows values of this size, because they exist already.
    func allowValues(of size: Int) throws {
        if size > Int(valueLimit) { try limitValues(to: Int32(clamping: size)) }
    }

    func tooBig(_ error: MoultError) -> MoultError {
        var error = error
        error.why =
            "\(error.why ?? ""); SQL on this database may make values of at most \(valueLimit >> 20) MiB, "
            + "eight times what the file could store"
        error.now =
            "Find the generated column, index, trigger, view or query that makes a larger value, and change it with the app or with sqlite3."
        return error
    }
}

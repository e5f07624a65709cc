import CSQLite
import MoultBasics

/// When a transaction takes its lock.
package enum TransactionKind: String, Sendable {
    /// When it first reads or writes.
    case deferred = "DEFERRED"
    /// The write lock at once.
    case immediate = "IMMEDIATE"
    /// Takes the write lock at once; outside WAL mode no other connection can read either.
    case exclusive = "EXCLUSIVE"
}

extension Connection {
    package var isInTransaction: Bool { get throws { sqlite3_get_autocommit(try handle) == 0 } }

    /// Runs the body in a transaction: committed when it returns, rolled back when it or the commit throws.
    package func transaction<R>(_ kind: TransactionKind, _ body: () throws -> R) throws -> R {
        try execute("BEGIN \(kind.rawValue)")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // Some errors, such as a full disk, have rolled back already.
            guard isOpen, try isInTransaction else { throw error }
            do {
                try execute("ROLLBACK")
            } catch let second {
                throw MoultError(
                    .sqlite, what: "cannot roll back on \(path)", why: "\(second)", now: "Close the connection",
                    cause: error)
            }
            throw error
        }
    }
}

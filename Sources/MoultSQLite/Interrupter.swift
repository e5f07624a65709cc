import CSQLite
import Synchronization

/// Stops the statements that a connection runs, from any thread, also when the connection is gone meanwhile.
package final class Interrupter: Sendable {
    private let database: Mutex<UInt>

    init(_ handle: OpaquePointer?) {
        database = Mutex(UInt(bitPattern: handle))
    }

    /// Makes the running statements of the connection fail with `.interrupt`.
    package func interrupt() {
        database.withLock { address in
            guard let handle = OpaquePointer(bitPattern: address) else { return }
            sqlite3_interrupt(handle)
        }
    }

    /// True when the connection is closed and nothing is left to interrupt.
    package var isDisarmed: Bool { database.withLock { $0 == 0 } }

    /// Forgets the handle before it is freed.
    func disarm() {
        database.withLock { $0 = 0 }
    }

    /// Takes the handle again, which was not freed after all.
    func arm(_ handle: OpaquePointer) {
        database.withLock { $0 = UInt(bitPattern: handle) }
    }
}

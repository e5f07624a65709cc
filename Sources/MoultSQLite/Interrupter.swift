import CSQLite
import Synchronization

/// Interrupts the statements of a connection from any thread. Does nothing once the connection is closed.
package final class Interrupter: Sendable {
    private let database: Mutex<UInt>

    init(_ handle: OpaquePointer?) {
        database = Mutex(UInt(bitPattern: handle))
    }

    /// Makes the connection's running statements fail with `.interrupt`.
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

internal import Synchronization

/// Work on a separate thread, and its result.
package final class BackgroundWork<Value: Sendable>: @unchecked Sendable {
    // Unchecked: only the creator uses `thread`; the lock protects everything else.
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

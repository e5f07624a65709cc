internal import Glibc

/// Hands filled batches from the thread that reads to the one that inserts, and the empty ones back.
final class BatchExchange: @unchecked Sendable {  // Every property is touched under the mutex only.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>
    private var empty: [RowBatch]
    private var full: [RowBatch] = []
    private var end: Result<Void, any Error>?
    private var isClosed = false

    init(batches: Int, size: Int) {
        mutex = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        // Both always succeed on Linux with default attributes.
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
        empty = (0..<batches).map { _ in RowBatch(capacity: size) }
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(changed)
        mutex.deallocate()
        changed.deallocate()
    }

    /// Fills batch after batch until there are no more rows, or nobody wants them.
    func produce(_ fill: (RowBatch) throws -> Bool) {
        let result = Result {
            while let batch = nextEmpty(), try fill(batch) { locked { full.append(batch) } }
        }
        locked { end = result }
    }

    private func nextEmpty() -> RowBatch? {
        locked {
            while empty.isEmpty, !isClosed { pthread_cond_wait(changed, mutex) }
            return isClosed ? nil : empty.popLast()
        }
    }

    /// The next filled batch; nil after the last one.
    func take() throws -> RowBatch? {
        let next: Result<RowBatch?, any Error>? = locked {
            while full.isEmpty, end == nil { pthread_cond_wait(changed, mutex) }
            return full.isEmpty ? end.map { $0.map { nil } } : .success(full.removeFirst())
        }
        return try next?.get()
    }

    func giveBack(_ batch: RowBatch) { locked { empty.append(batch) } }

    /// Tells the producer to stop.
    func close() { locked { isClosed = true } }

    private func locked<R>(_ body: () -> R) -> R {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_signal(changed)
            pthread_mutex_unlock(mutex)
        }
        return body()
    }
}

internal import MoultLibc

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

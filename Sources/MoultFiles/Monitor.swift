internal import MoultLibc

/// A lock with a condition: threads change what they share under it, and wait in it for what others change.
package final class Monitor: @unchecked Sendable {
    // Unchecked: both are for several threads at once.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        // With the default attributes, neither can fail on Linux.
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Runs `body` while no other thread is in here; then those who wait look again.
    package func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body()
    }

    /// Lets others in for as long as the condition holds; only in `locked`.
    package func wait(while condition: () throws -> Bool) rethrows {
        while try condition() { pthread_cond_wait(changed, mutex) }
    }
}

internal import MoultLibc

/// Starts separate threads, so that blocking calls never hold up a shared thread pool.
package enum Threads {
    private final class Work {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    /// A thread that must be joined.
    package struct Running {
        fileprivate let thread: pthread_t
        package func wait() { pthread_join(thread, nil) }
    }

    /// The number of processors.
    package static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Starts a thread; fails only if the system has no resources for another one.
    package static func start(_ body: @escaping @Sendable () -> Void) throws -> Running {
        var thread = pthread_t()
        #if DEBUG
            // System calls of a test's threads count as the test's own.
            let faults = Faults.current
            let work = Unmanaged.passRetained(Work { Faults.$current.withValue(faults, operation: body) })
        #else
            let work = Unmanaged.passRetained(Work(body))
        #endif
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw Errno(code).error("cannot start a thread")
        }
        return Running(thread: thread)
    }

    /// Starts a thread that is never joined.
    package static func detach(_ body: @escaping @Sendable () -> Void) throws {
        pthread_detach(try start(body).thread)
    }
}

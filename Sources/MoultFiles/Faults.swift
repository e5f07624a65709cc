#if DEBUG
    internal import Synchronization

    /// Counts the system calls of the running test and makes the n-th of them fail; not in release builds.
    package final class Faults: Sendable {
        @TaskLocal package static var current: Faults?

        private struct Count {
            var calls = 0
            var failedCall: String?
        }
        private let count = Mutex(Count())
        private let failAt: Int
        private let code: Int32
        private let keepsFailing: Bool

        /// The name of the first call that was made to fail.
        package var failedCall: String? { count.withLock { $0.failedCall } }

        /// Makes the call with this number (from 1) fail, and all later ones if `keepsFailing`. With 0, it only counts calls.
        package init(failAt: Int, code: Int32, keepsFailing: Bool = false) {
            (self.failAt, self.code, self.keepsFailing) = (failAt, code, keepsFailing)
        }

        static func injectedError(_ name: StaticString) -> Errno? {
            guard let faults = current else { return nil }
            return faults.count.withLock { count in
                count.calls += 1
                let number = count.calls
                guard faults.failAt > 0, number == faults.failAt || (faults.keepsFailing && number > faults.failAt)
                else {
                    return nil
                }
                if count.failedCall == nil { count.failedCall = "\(name)" }
                return Errno(faults.code)
            }
        }
    }
#endif

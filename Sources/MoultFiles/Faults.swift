#if DEBUG
    /// Counts the system calls of the running test and makes the n-th of them fail; not in release builds.
    package final class Faults: @unchecked Sendable {
        // Unchecked: a value belongs to one test, which runs its update on one thread; helpers of that thread see none.
        @TaskLocal package static var current: Faults?

        package private(set) var calls: [String] = []
        package private(set) var struck: String?
        private let failAt: Int
        private let code: Int32
        private let goesOn: Bool

        /// Fails the call with this number (from 1), and all later ones too if it goes on; 0 only counts.
        package init(failAt: Int, code: Int32, goesOn: Bool = false) {
            (self.failAt, self.code, self.goesOn) = (failAt, code, goesOn)
        }

        static func strike(_ name: StaticString) -> Errno? {
            guard let faults = current else { return nil }
            // The descriptor is closed whatever close says, and a read that fails is no change of the disk.
            faults.calls.append("\(name)")
            let number = faults.calls.count
            guard faults.failAt > 0, number == faults.failAt || (faults.goesOn && number > faults.failAt) else {
                return nil
            }
            if faults.struck == nil { faults.struck = "\(name)" }
            return Errno(faults.code)
        }
    }
#endif

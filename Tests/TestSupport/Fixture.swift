import MoultLibc
import Synchronization

/// Files that many tests begin with and that take time to make: each process makes them once, and copies them.
package enum Fixture {
    private static let made = Mutex<[String: Scratch]>([:])

    /// Copies into `directory` what `make` leaves in the directory that it is given; `key` is all that it depends on.
    package static func copy(_ key: String, to directory: String, make: (String) throws -> Void) throws {
        let source = try made.withLock { made in
            if let scratch = made[key] { return scratch.path }
            if made.isEmpty { atexit { Fixture.made.withLock { $0 = [:] } } }
            let scratch = try Scratch()
            try make(scratch.path)
            made[key] = scratch
            return scratch.path
        }
        try Shell.must(["cp", "-a", "\(source)/.", directory])
    }
}

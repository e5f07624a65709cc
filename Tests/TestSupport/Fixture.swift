import MoultLibc
import Synchronization

/// Files that many tests start with, and that take long to create. Each process creates the files once, and copies them for
/// each test.
package enum Fixture {
    private static let made = Mutex<[[UInt8]: Scratch]>([:])

    /// Copies the files that `make` creates to `directory`. `key` identifies the input of `make`.
    package static func copy(_ key: String, to directory: String, make: (String) throws -> Void) throws {
        // As bytes, because a String treats two spellings of é as equal.
        let key = Array(key.utf8)
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

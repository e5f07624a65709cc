internal import MoultFiles
internal import Synchronization

/// The SHA-256 digests of files, computed one after the other on a separate thread.
package final class BackgroundDigest: Sendable {
    private let work: Work
    private let thread: Mutex<Threads.Running?>

    /// Opens the files at once, so they may be moved afterwards; their content must not change.
    package init(of paths: [String: String]) throws {
        let work = try Work(paths.map { (name: $0.key, file: File(try Descriptor($0.value, .read))) })
        self.work = work
        thread = Mutex(try Threads.start { work.run() })
    }

    /// Stops reading the files.
    deinit {
        work.isStopped.withLock { $0 = true }
        wait()
    }

    /// Waits for all digests, and returns one of them; nil for a name without a file.
    package func digest(_ name: String) throws -> String? {
        wait()
        return try work.results.withLock { $0[name] }?.get()
    }

    /// Computes the digest of a file while `body` runs, and passes it to `check` afterwards.
    package static func of(_ path: String, while body: () throws -> Void, check: (String) throws -> Void) throws {
        let running = try BackgroundDigest(of: [path: path])
        try body()
        if let digest = try running.digest(path) { try check(digest) }
    }

    private func wait() {
        thread.withLock { thread in
            thread?.wait()
            thread = nil
        }
    }

    private struct Stopped: Error {}

    private final class File: Sendable {
        let descriptor: Descriptor
        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    private final class Work: Sendable {
        private let files: [(name: String, file: File)]
        let results = Mutex<[String: Result<String, any Error>]>([:])
        let isStopped = Mutex(false)

        init(_ files: [(name: String, file: File)]) throws { self.files = files }

        func run() {
            for (name, file) in files {
                let result = Result {
                    try SHA256.digest(of: file.descriptor) {
                        if isStopped.withLock({ $0 }) { throw Stopped() }
                    }.hex
                }
                results.withLock { $0[name] = result }
            }
        }
    }
}

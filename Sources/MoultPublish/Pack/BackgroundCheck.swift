internal import MoultFiles
internal import StepKit
internal import Synchronization

/// Verifies the databases of a release on a separate thread, while the bundle is being packed.
final class BackgroundCheck: @unchecked Sendable {
    // Unchecked: only the creator uses `thread`; the lock protects everything else.
    private let result: Mutex<Result<[Database], any Error>?>
    private var thread: Threads.Running?

    init(
        of databases: [Database], in outputStaging: String, within time: CheckTime, shouldStop: (@Sendable () -> Bool)?
    ) throws {
        result = Mutex(nil)
        thread = try Threads.start { [self] in
            let found = Result {
                try databases.map { database in
                    var proven = database
                    try SealedDatabase(
                        path: "\(outputStaging)/\(database.member)", name: database.name, time: time,
                        scratch: "\(outputStaging)/exam", shouldStop: shouldStop
                    ).verify(&proven)
                    return proven
                }
            }
            result.withLock { $0 = found }
        }
    }

    /// Throws if the thread has found a database that cannot be published.
    func check() throws { if case .failure(let error)? = result.withLock({ $0 }) { throw error } }

    func wait() {
        thread?.wait()
        thread = nil
    }

    /// Waits for the thread, and returns the databases with all fields that they have in the sealed manifest.
    func databases() throws -> [Database] {
        wait()
        return try result.withLock { $0 }?.get() ?? []
    }
}

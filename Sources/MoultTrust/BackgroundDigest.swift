internal import MoultFiles
internal import Synchronization

/// The SHA-256 of a file, computed on a thread of its own.
package final class BackgroundDigest: Sendable {
    private let result = Mutex<Result<String, any Error>?>(nil)

    /// Computes the digest while `body` runs, and gives it to `check` afterwards.
    package static func of(_ path: String, while body: () throws -> Void, check: (String) throws -> Void) throws {
        let digest = BackgroundDigest()
        let thread = try Threads.start {
            let result = Result { try SHA256.digest(ofFileAt: path).hex }
            digest.result.withLock { $0 = result }
        }
        // Whatever happens, nothing may go on reading the file.
        do { try body() } catch {
            thread.wait()
            throw error
        }
        thread.wait()
        if let result = digest.result.withLock({ $0 }) { try check(result.get()) }
    }
}

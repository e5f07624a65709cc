internal import MoultFiles
public import StepKit

extension Store {
    /// The same as the blocking `update`, on a thread of its own, so that no thread of Swift's pool is held up.
    @discardableResult
    public func update(
        to manifest: String, follow: Policy.Follow = .match, app: Version? = nil, waiting seconds: Int = 10,
        progress: @escaping @Sendable (UpdateProgress) -> Void = { _ in }
    ) async throws -> Update {
        try await Self.onThread {
            try update(to: manifest, follow: follow, app: app, waiting: seconds, progress: progress)
        }
    }

    /// The same as the blocking `rollback`, on a thread of its own.
    @discardableResult
    public func rollback(to version: String? = nil, reason: String, waiting seconds: Int = 10) async throws -> Update {
        try await Self.onThread { try rollback(to: version, reason: reason, waiting: seconds) }
    }

    private static func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws
        -> Result
    {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try Threads.detach { continuation.resume(with: Swift.Result { try body() }) }
            } catch { continuation.resume(throwing: error) }
        }
    }
}

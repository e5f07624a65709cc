package import MoultBasics
internal import MoultFiles

/// The lock that lets only one process update a store. While a process has it, all paths in `.moult` start at the
/// directory that it locked.
package final class StoreLock: Sendable {
    private let directory: PinnedDirectory
    private let lock: FileLock

    private init(_ directory: PinnedDirectory, _ lock: FileLock) { (self.directory, self.lock) = (directory, lock) }

    /// Takes the store's lock; waits for the given time, then throws an error that names the holder (exit 75). `stop` can end
    /// the wait.
    package static func take(
        _ layout: StoreLayout, wait seconds: Int = 0, stop: () throws -> Void = {}
    ) throws -> StoreLock {
        let until = ContinuousClock.now + .seconds(seconds)
        let patience = ContinuousClock.now + leftBehind
        var backoff = Backoff(.seconds(seconds) + leftBehind)
        while true {
            if let lock = try lockForChanges(layout) { return lock }
            let now = ContinuousClock.now
            if now >= until, try now >= patience || !isLeftBehind(layout) { break }
            try stop()
            _ = backoff.pause()
        }
        // The holder may have ended in the meantime; then no name is known.
        let holders = try LockHolders.of(layout.lock).map(\.description)
        throw MoultError(
            .locked, .busy, what: "the store \(layout.root) is in use",
            why: holders.isEmpty ? "locked by another moult process" : "locked by \(holders.joined(separator: ", "))",
            now:
                "Try again later, or \(commandLine: "wait for the other process: --wait SECONDS", app: "wait longer: waiting:")"
        )
    }

    private static let leftBehind = Duration.seconds(5)

    /// Returns whether the lock's holder has ended. If it was killed while it was starting a child, the child has a copy of the lock
    /// until it executes its program. If the process ID has been reused, this returns false, and nothing waits.
    private static func isLeftBehind(_ layout: StoreLayout) throws -> Bool {
        // Without /proc, moult cannot tell whether the holder has ended.
        guard try Files.facts("\(SystemFeatures.proc)/locks") != nil else { return false }
        return try LockHolders.of(layout.lock).allSatisfy { try Files.facts("\(SystemFeatures.proc)/\($0.pid)") == nil }
    }

    /// Takes the store's lock if it is free.
    package static func takeIfFree(_ layout: StoreLayout) throws -> StoreLock? {
        // A thread of this process that updates the store has pinned the directory.
        guard let directory = try PinnedDirectory.ifFree(layout.hidden) else { return nil }
        return try FileLock.take(layout.lock, .exclusive).map { StoreLock(directory, $0) }
    }

    /// Takes the lock if it is free. A user who may not take it may not change the store either, and the error says so.
    private static func lockForChanges(_ layout: StoreLayout) throws -> StoreLock? {
        do {
            if try Files.facts(layout.settings) != nil {
                for path in layout.directories where try Files.facts(path) == nil { try Files.ensureDirectory(path) }
            }
            return try takeIfFree(layout)
        } catch let error as MoultError { throw explained(error, layout) }
    }

    /// Returns the error for a lock that the system did not let this user take; other errors unchanged.
    package static func explained(_ error: MoultError, _ layout: StoreLayout) -> MoultError {
        guard Files.isDenied(error) else { return error }
        let isReadOnly = error.cause as? Errno == .readOnly
        return MoultError(
            .store, what: "this user cannot change the store \(layout.root)", why: "\(error.what): \(error.why ?? "")",
            now: isReadOnly
                ? "Mount the file system of the store read-write, or use another store."
                : "Run the command as the user who owns the store.", cause: error.cause)
    }
}

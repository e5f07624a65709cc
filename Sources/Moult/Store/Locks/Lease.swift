internal import MoultBasics
internal import MoultFiles

/// Keeps a generation in place while a process reads from it. A lease is a read lock on the generation's lease file. It
/// writes nothing, works in a read-only store and for other users, and the kernel drops it when the process ends.
/// Updates do not wait for it; they only check whether one exists.
package final class Lease: Sendable {
    package let generation: String
    package let directory: String
    /// What the reader has seen. An update may be between its switch and its commits.
    package let seen: Announcement.Seen
    /// The lock on the lease file; nil in a store to which only older versions of moult have written.
    private let lock: ReadLock?
    /// A lock on the generation's directory: older versions of moult check for it before they remove a generation.
    private let older: FileLock?

    private init(_ locks: Locks, _ layout: StoreLayout) throws {
        (generation, directory, lock, older) = (locks.generation, locks.directory, locks.lock, locks.older)
        // Read while the lock is held and before any database: what is announced later is news for the reader.
        seen = .init(generation: generation, announced: try Announcement.read(layout))
    }

    private struct Locks {
        let generation: String
        let directory: String
        let lock: ReadLock?
        let older: FileLock?
    }

    /// Takes a lease on the installed generation; nil if nothing is installed.
    package static func take(_ layout: StoreLayout) throws -> Lease? {
        var backoff = Backoff(patience)
        while let name = try Generation.currentName(layout) {
            let locks: Locks?
            do { locks = try take(name, layout) } catch {
                // The generation was removed before it could be locked, so a newer one is current.
                if try Generation.currentName(layout) != name { continue }
                throw error
            }
            // A lock prevents removal only if it was taken while `current` still pointed to the generation.
            guard try Generation.currentName(layout) == name else { continue }
            if let locks { return try Lease(locks, layout) }
            guard backoff.pause() else { throw try blocked(name, layout) }
        }
        return nil
    }

    /// How long to wait for an older version of moult, which locks a generation only briefly.
    private static let patience = Duration.seconds(2)

    private static func take(_ name: String, _ layout: StoreLayout) throws -> Locks? {
        let (directory, file) = (layout.generation(name), layout.lease(name))
        func older() throws -> FileLock? { try FileLock.take(directory, .shared, directory: true) }
        switch try ReadLock.take(file) {
        case .taken(let lock):
            // The file may have been removed and recreated since it was opened.
            guard try lock.facts().isSameFile(Files.facts(file)) else { return nil }
            return Locks(generation: name, directory: directory, lock: lock, older: try older())
        case .blocked: return nil
        case .impossible:
            return try older().map { Locks(generation: name, directory: directory, lock: nil, older: $0) }
        }
    }

    private static func blocked(_ name: String, _ layout: StoreLayout) throws -> MoultError {
        var holders = ""
        // The kernel's table may miss a lock if others are taken and released while it is read.
        for _ in 0..<10 where holders.isEmpty {
            holders = try LeaseFile.holders(of: name, layout).map(\.description).joined(separator: ", ")
        }
        return MoultError(
            .locked, .busy, what: "generation \(name) of \(layout.root) cannot be read now",
            why: "\(holders.isEmpty ? "another process" : holders) has locked the generation",
            now: "Stop that process. If you own the store, protect its readers from such locks: \(moult: "recover")")
    }
}

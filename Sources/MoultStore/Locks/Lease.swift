internal import MoultBasics
internal import MoultFiles

/// Keeps a generation in place while a process reads from it. A lease is a read lock on the generation's lease file. It
/// writes nothing, works in a read-only store and for other users, and the kernel drops it when the process ends.
/// Updates do not wait for it; they only check whether one exists.
package final class Lease: Sendable {
    package let generation: String
    package let directory: String
    /// The lock on the lease file; nil in a store to which only older versions of moult have written.
    private let lock: ReadLock?
    /// A lock on the generation's directory: older versions of moult check for it before they remove a generation.
    private let older: FileLock?

    private init(generation: String, directory: String, lock: ReadLock?, older: FileLock?) {
        (self.generation, self.directory, self.lock, self.older) = (generation, directory, lock, older)
    }

    /// Takes a lease on the installed generation; nil if nothing is installed.
    package static func take(_ layout: StoreLayout) throws -> Lease? {
        var backoff = Backoff(patience)
        while let name = try Generation.currentName(layout) {
            let lease: Lease?
            do { lease = try take(name, layout) } catch {
                // The generation was removed before it could be locked, so a newer one is current.
                if try Generation.currentName(layout) != name { continue }
                throw error
            }
            // A lock prevents removal only if it was taken while `current` still pointed to the generation.
            guard try Generation.currentName(layout) == name else { continue }
            if let lease { return lease }
            guard backoff.pause() else { throw try blocked(name, layout) }
        }
        return nil
    }

    /// How long to wait for an older version of moult, which locks a generation only briefly.
    private static let patience = Duration.seconds(2)

    private static func take(_ name: String, _ layout: StoreLayout) throws -> Lease? {
        let (directory, file) = (layout.generation(name), layout.lease(name))
        func older() throws -> FileLock? { try FileLock.take(directory, .shared, directory: true) }
        switch try ReadLock.take(file) {
        case .taken(let lock):
            // The file may have been removed and recreated since it was opened.
            guard try lock.facts().isSameFile(Files.facts(file)) else { return nil }
            return Lease(generation: name, directory: directory, lock: lock, older: try older())
        case .blocked: return nil
        case .impossible:
            return try older().map { Lease(generation: name, directory: directory, lock: nil, older: $0) }
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
            now: "Stop that process. If you own the store, protect its readers from such locks: moult recover")
    }
}

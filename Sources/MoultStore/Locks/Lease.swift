internal import MoultBasics
internal import MoultFiles

/// Holds one generation in place while a process reads from it.
///
/// A lease is a read lock on the generation's lease file. Nothing is written, it works in a read-only store and for other
/// users, and the kernel drops it with the process. No update waits for it; updates only check whether one exists.
package final class Lease: Sendable {
    package let generation: String
    package let directory: String
    /// Nil in a store that only older versions have written to.
    private let lock: ReadLock?
    /// For older versions, which look for such a lock before they remove a generation.
    private let older: FileLock?

    private init(generation: String, directory: String, lock: ReadLock?, older: FileLock?) {
        (self.generation, self.directory, self.lock, self.older) = (generation, directory, lock, older)
    }

    /// Takes a lease on what is installed now; nil if nothing is.
    package static func take(_ layout: StoreLayout) throws -> Lease? {
        var backoff = Backoff(patience)
        while let name = try Generation.currentName(layout) {
            let lease: Lease?
            do { lease = try take(name, layout) } catch {
                // Removed between the look and the lock: then something newer is current.
                if try Generation.currentName(layout) != name { continue }
                throw error
            }
            // Only a lock that was there while `current` still pointed at the generation keeps it from being removed.
            guard try Generation.currentName(layout) == name else { continue }
            if let lease { return lease }
            guard backoff.pause() else { throw try blocked(name, layout) }
        }
        return nil
    }

    /// An older version holds the lock of a generation for moments only.
    private static let patience = Duration.seconds(2)

    private static func take(_ name: String, _ layout: StoreLayout) throws -> Lease? {
        let (directory, file) = (layout.generation(name), layout.lease(name))
        func older() throws -> FileLock? { try FileLock.take(directory, .shared, directory: true) }
        switch try ReadLock.take(file) {
        case .taken(let lock):
            // The file may have been removed, and made again, since it was opened.
            guard try lock.facts().isSameFile(Files.facts(file)) else { return nil }
            return Lease(generation: name, directory: directory, lock: lock, older: try older())
        case .blocked: return nil
        case .impossible:
            return try older().map { Lease(generation: name, directory: directory, lock: nil, older: $0) }
        }
    }

    private static func blocked(_ name: String, _ layout: StoreLayout) throws -> MoultError {
        var holders = ""
        // The kernel's table may miss a lock where others come and go while it is read.
        for _ in 0..<10 where holders.isEmpty {
            holders = try LeaseFile.holders(of: name, layout).map(\.description).joined(separator: ", ")
        }
        return MoultError(
            .locked, .busy, what: "generation \(name) of \(layout.root) cannot be read now",
            why: "\(holders.isEmpty ? "another process" : holders) has locked it",
            now: "End that process. As the owner of the store, protect its readers from such locks: moult recover")
    }
}

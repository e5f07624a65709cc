internal import MoultBasics
package import MoultFiles

/// The files on which readers hold their leases: `.moult/leases/GENERATION`, empty, and without write permission. Any process
/// that can read a file can take an exclusive `flock` on it and block all others, so leases do not use `flock`. A read lock
/// (`F_OFD_SETLK`) does not block readers, and a write lock needs a file that is open for writing, which only the store's owner
/// can have. Updates take neither: a lease that is taken after `current` was switched does not count, so it is enough to check
/// for leases.
package enum LeaseFile {
    private static let mode: UInt32 = 0o444

    /// Creates the lease files of these generations, which a copy of a store may lack. Needs the store's lock.
    package static func make(_ generations: [String], _ layout: StoreLayout) throws {
        for name in generations {
            let path = layout.lease(name)
            let facts = try Files.facts(path)
            if let facts, facts.kind == .file {
                // In a copy, the mode may differ. Another user's file keeps its mode.
                if facts.mode != mode { do { try Files.setMode(path, mode) } catch  where Files.isDenied(error) {} }
                continue
            }
            try Files.ensureDirectory(layout.leases)
            if facts != nil {
                // moult creates only regular files here, so anything else is moved away.
                try Files.rename(path, to: try Files.firstFree("\(layout.root)/moult-lease.old"))
            }
            // Not synced: the file is empty, and readers can do without it.
            let file = try Descriptor(path, .create, mode: mode)
            try file.setMode(mode)
            try file.close()
        }
    }

    /// Creates missing lease files and removes those of generations that no longer exist. Needs the store's lock.
    static func refresh(_ layout: StoreLayout) throws {
        let names = try Generation.names(layout)
        try make(names, layout)
        for name in try Files.list(layout.leases) where !names.contains(name) {
            // Only regular files are removed, because moult creates nothing else here.
            if try Files.facts(layout.lease(name))?.kind == .file { try remove(name, layout) }
        }
    }

    package static func remove(_ generation: String, _ layout: StoreLayout) throws {
        try Files.remove(layout.lease(generation))
    }

    /// Returns whether a process has a lease on the generation.
    package static func isHeld(_ generation: String, _ layout: StoreLayout) throws -> Bool {
        if try ReadLock.isHeld(layout.lease(generation)) { return true }
        return try FileLock.take(layout.generation(generation), .exclusive, directory: true) == nil
    }

    /// Returns the processes with a lease on a generation. Only root sees those of other users that hold no `flock`.
    package static func holders(
        of generation: String, _ layout: StoreLayout, in locks: KernelLocks? = nil
    ) throws -> [ProcessFacts] {
        let older = try LockHolders.of(layout.generation(generation), in: locks)
        guard try ReadLock.isHeld(layout.lease(generation)) else { return older }
        // The kernel's table has no process for such a lock, but only lease holders have this file open.
        let open = try OpenFiles.holders(of: [layout.lease(generation)])
        return older + open.filter { process in !older.contains { $0.pid == process.pid } }
    }
}

/// Keeps a generation in place while a process reads from it. A lease is a read lock on the generation's lease file. It
/// writes nothing, works in a read-only store and for other users, and the kernel drops it when the process ends.
/// Updates do not wait for it; they only check whether one exists.
package final class Lease: Sendable {
    package let generation: String
    package let directory: String
    /// What the reader has seen. An update may be between its switch and its commits.
    package let seen: Announcement.Seen
    /// The lock on the lease file; nil in a copy of a store that lacks this file.
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
        case .impossible: return try older().map { Locks(generation: name, directory: directory, lock: nil, older: $0) }
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

internal import MoultBasics
package import MoultFiles

/// The files on which readers hold their leases: `.moult/leases/GENERATION`, empty, and without write permission. Any process
/// that can read a file can take an exclusive `flock` on it and block all others, so leases do not use `flock`. A read lock
/// (`F_OFD_SETLK`) does not block readers, and a write lock needs a file that is open for writing, which only the store's owner
/// can have. Updates take neither: a lease that is taken after `current` was switched does not count, so it is enough to check
/// for leases.
package enum LeaseFile {
    private static let mode: UInt32 = 0o444

    /// Creates the lease files of these generations, which stores of older versions lack. Needs the store's lock.
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

    /// Returns whether a process has a lease on the generation, possibly one of an older version of moult.
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

internal import MoultBasics
package import MoultFiles

/// The files on which readers hold their leases: `.moult/leases/GENERATION`, empty, and without write permission.
///
/// Every process that may read a file can take the `flock` of it, exclusively, and block all others. A read lock
/// (`F_OFD_SETLK`) blocks no reader, and a write lock needs a file that is open for writing, which only the store's owner can
/// have. An update takes neither: a lease that is taken after `current` has moved on does not count, so that checking for a
/// lease is enough.
package enum LeaseFile {
    private static let mode: UInt32 = 0o444

    /// Makes the files of these generations, in stores of older versions too. Needs the store's lock.
    package static func make(_ generations: [String], _ layout: StoreLayout) throws {
        for name in generations {
            let path = layout.lease(name)
            let facts = try Files.facts(path)
            if let facts, facts.kind == .file {
                // In a copy the mode may be another one. A file of another user keeps its mode.
                if facts.mode != mode { do { try Files.setMode(path, mode) } catch  where Files.isDenied(error) {} }
                continue
            }
            try Files.ensureDirectory(layout.leases)
            if facts != nil {
                // Whatever it is, moult did not make it.
                try Files.rename(path, to: try Files.firstFree("\(layout.root)/moult-lease.old"))
            }
            // Not synced: it is empty, and a reader who does not find it does without.
            let file = try Descriptor(path, .create, mode: mode)
            try file.setMode(mode)
            try file.close()
        }
    }

    /// Makes what is missing of all generations and removes what is left of those that are gone. Needs the store's lock.
    package static func tidy(_ layout: StoreLayout) throws {
        let names = try Generation.names(layout).filter(Generation.isName)
        try make(names, layout)
        for name in try Files.list(layout.leases) where !names.contains(name) {
            // Whatever else is there, moult did not make it.
            if try Files.facts(layout.lease(name))?.kind == .file { try remove(name, layout) }
        }
    }

    package static func remove(_ generation: String, _ layout: StoreLayout) throws {
        try Files.remove(layout.lease(generation))
    }

    /// Whether a process reads the generation, also by a lease of an older version.
    package static func isHeld(_ generation: String, _ layout: StoreLayout) throws -> Bool {
        if try ReadLock.isHeld(layout.lease(generation)) { return true }
        return try FileLock.take(layout.generation(generation), .exclusive, directory: true) == nil
    }

    /// The processes with a lease on a generation. Those of other users that hold no `flock` are seen by root only.
    package static func holders(
        of generation: String, _ layout: StoreLayout, in locks: KernelLocks? = nil
    ) throws -> [ProcessFacts] {
        let older = try LockHolders.of(layout.generation(generation), in: locks)
        guard try ReadLock.isHeld(layout.lease(generation)) else { return older }
        // The kernel's table has no process for such a lock, but nothing else has this file open.
        let open = try OpenFiles.holders(of: [layout.lease(generation)])
        return older + open.filter { process in !older.contains { $0.pid == process.pid } }
    }
}

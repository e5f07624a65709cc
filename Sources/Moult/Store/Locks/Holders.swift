internal import MoultBasics
package import MoultFiles
internal import MoultLibc
internal import StepKit

/// The processes that use a store, and the databases, generations or locks that they hold. Changes nothing.
package struct Holders: Sendable {
    package struct Use: Sendable, Equatable {
        package enum What: String, Sendable {
            case lock, generation, database
            /// A deleted file of the store: processes that have it open see old data.
            case gone
        }
        package enum How: String, Sendable {
            /// The process holds the store's lock: an update is running.
            case updating
            /// The process has a lease, so that the generation is kept.
            case leased
            case open, reading, writing
        }
        package let what: What
        /// The name of the database or generation; otherwise the path.
        package let name: String
        package let generation: String?
        package let path: String
        package let how: How
    }

    package struct Holder: Sendable, Equatable {
        package let process: ProcessFacts
        package let uses: [Use]
    }

    package let holders: [Holder]
    /// The number of processes that could not be inspected; their leases and locks are known, but not their open files.
    package let unseen: Int

    package init(of store: StoreSnapshot) throws { try self.init(of: store, KernelLocks.read()) }

    private init(of store: StoreSnapshot, _ locks: KernelLocks) throws {
        let layout = store.layout
        var subjects: [Subject] = try Self.databases(store) + Self.leases(layout)
        let byNumber = Dictionary(subjects.map { (FileNumber($0.facts), $0) }) { first, _ in first }
        // A deleted file of the store is on one of these file systems.
        let devices = Set((subjects.map(\.facts) + [try Files.facts(layout.root)].compactMap(\.self)).map(\.device))
        let table = try OpenFileTable.read { facts, path in
            byNumber[FileNumber(facts)] != nil
                || facts.kind == .file && devices.contains(facts.device) && Self.isGone(path(), layout)
        }
        var held = HeldLocks(locks)
        var uses: [Int32: [Use]] = [:]
        func add(_ subject: Subject, _ pid: Int32) throws {
            let use = try subject.use(subject.how(of: pid, &held))
            if !uses[pid, default: []].contains(use) { uses[pid, default: []].append(use) }
        }
        for entry in table.entries {
            if let subject = byNumber[FileNumber(entry.facts)] {
                if !subject.isSidecar { try add(subject, entry.pid) }
            } else {
                uses[entry.pid, default: []].append(
                    Use(what: .gone, name: entry.path, generation: nil, path: entry.path, how: .open))
            }
        }
        // For processes of other users, locks are visible, but open files are not.
        subjects += try Self.directories(layout)
        for subject in subjects where !subject.isSidecar {
            for (pid, locks) in try held.on(subject.facts, at: subject.path)
            where pid > 0 && locks.contains(where: { $0.kind != .lease }) { try add(subject, pid) }
        }
        uses[ProcessFacts.ownPID] = nil
        holders = uses.keys.sorted().map { Holder(process: ProcessFacts(pid: $0), uses: uses[$0] ?? []) }
        unseen = table.unseen
    }

    /// Returns the processes that have files of an older release open without a lease, so they do not follow the store: a server
    /// that keeps a stable path open reads old data until it opens the path again. The kernel's lock table, which is long on a
    /// large machine, is read only if a process may be outdated.
    package static func outdated(in store: StoreSnapshot, except current: String) throws -> [OutdatedReader] {
        if try Holders(of: store, .none).outdated(except: current).isEmpty { return [] }
        return try Holders(of: store).outdated(except: current)
    }

    private func outdated(except current: String) -> [OutdatedReader] {
        holders.compactMap { holder in
            let leased = Set(holder.uses.filter { $0.how == .leased }.map(\.name))
            var names: [String] = []
            for use in holder.uses {
                switch use.what {
                case .database:
                    guard let generation = use.generation, generation != current, !leased.contains(generation),
                        !names.contains(use.name)
                    else { continue }
                    names.append(use.name)
                case .gone where !use.path.contains("/.moult/") || use.path.contains("/.moult/generations/"):
                    names.append(use.path.replacing(" (deleted)", with: ""))
                case .gone where use.path.contains("/.moult/transactions/"):
                    // A repaired or collected generation, or a replaced file, was moved there before it was deleted.
                    let name = Files.name(of: use.path.replacing(" (deleted)", with: ""))
                    if !names.contains(name) { names.append(name) }
                case .lock, .generation, .gone: continue
                }
            }
            return names.isEmpty ? nil : OutdatedReader(process: holder.process, databases: names)
        }
    }

    private struct Subject {
        let what: Use.What
        let name: String
        var generation: String?
        let path: String
        let facts: FileFacts
        /// The sidecars of a writable database: their locks show the activity of a process.
        var sidecars: [Subject] = []
        var isSidecar = false

        func use(_ how: Use.How) -> Use { Use(what: what, name: name, generation: generation, path: path, how: how) }

        func how(of pid: Int32, _ locks: inout HeldLocks) throws -> Use.How {
            switch what {
            case .lock: return .updating
            case .generation: return .leased
            case .gone: return .open
            case .database: break
            }
            func mine(_ subject: Subject) throws -> [KernelLocks.Lock] {
                try locks.on(subject.facts, at: subject.path)[pid]?.filter { $0.kind == .record } ?? []
            }
            // In WAL mode, a process locks the file itself while it has the file open; the locks on the shared memory show its
            // activity.
            let shared = try sidecars.flatMap(mine)
            let held = try shared.isEmpty ? mine(self) : shared
            let (read, write) = shared.isEmpty ? (SQLiteLocks.shared, SQLiteLocks.writing) : SQLiteLocks.memory
            if held.contains(where: { $0.isExclusive && $0.bytes.overlaps(write) }) { return .writing }
            return held.contains { $0.bytes.overlaps(read) } ? .reading : .open
        }
    }

    /// The kernel's locks on each file, by process. They are looked up only once for a file, because a database may have a
    /// thousand readers.
    private struct HeldLocks {
        private let locks: KernelLocks
        private var known: [FileNumber: [Int32: [KernelLocks.Lock]]] = [:]

        init(_ locks: KernelLocks) { self.locks = locks }

        mutating func on(_ facts: FileFacts, at path: String) throws -> [Int32: [KernelLocks.Lock]] {
            let number = FileNumber(facts)
            if let held = known[number] { return held }
            let held = Dictionary(grouping: try locks.held(on: facts, at: path), by: \.pid)
            known[number] = held
            return held
        }
    }

    private static func databases(_ store: StoreSnapshot) throws -> [Subject] {
        var subjects: [Subject] = []
        let current = try store.installedName
        // A file that two releases share counts as a file of the installed release.
        let names = try Generation.names(store.layout)
        for name in names.filter({ $0 == current }) + names.filter({ $0 != current }) {
            // `status --deep` and `verify` report generations that cannot be loaded.
            guard let generation = try? store.generation(name) else { continue }
            for database in generation.manifest.databases {
                if database.kind.isSealed {
                    subjects += try subject(database.name, in: name, at: generation.path(database.member))
                } else if name == current {
                    subjects += try writable(database.name, at: store.place(of: database))
                }
            }
        }
        return subjects
    }

    private static func subject(_ name: String, in generation: String?, at path: String) throws -> [Subject] {
        try Files.factsThroughLinks(path).map {
            [Subject(what: .database, name: name, generation: generation, path: path, facts: $0)]
        } ?? []
    }

    private static func writable(_ name: String, at path: String) throws -> [Subject] {
        guard var database = try subject(name, in: nil, at: path).first else { return [] }
        if var memory = try subject(name, in: nil, at: "\(path)-shm").first {
            memory.isSidecar = true
            database.sidecars = [memory]
        }
        return [database] + database.sidecars
    }

    /// Returns the lease files. The kernel's lock table has no process for a lease, but only readers with a lease have its file
    /// open.
    private static func leases(_ layout: StoreLayout) throws -> [Subject] {
        try generations(layout) { layout.lease($0) }
    }

    private static func directories(_ layout: StoreLayout) throws -> [Subject] {
        let lock = try Files.facts(layout.lock).map {
            Subject(what: .lock, name: layout.lock, path: layout.lock, facts: $0)
        }
        return try [lock].compactMap(\.self) + generations(layout) { layout.generation($0) }
    }

    private static func generations(_ layout: StoreLayout, _ file: (String) -> String) throws -> [Subject] {
        try Generation.names(layout).compactMap { name in
            try Files.facts(file(name)).map {
                Subject(what: .generation, name: name, generation: name, path: layout.generation(name), facts: $0)
            }
        }
    }

    /// Returns whether the path, as the kernel reports it, is that of a deleted file of the store. SQLite also deletes its own
    /// temporary and lock files, but they are elsewhere.
    private static func isGone(_ path: String, _ layout: StoreLayout) -> Bool {
        path.isBelow(layout.root) && path.hasSuffix(" (deleted)")
    }

    /// A process that still has files of an older release open.
    package struct OutdatedReader: Sendable, Equatable {
        package let process: ProcessFacts
        /// The names of the databases; for a deleted file, its path.
        package let databases: [String]

        package var text: String {
            "\(process.description) still has the old \(databases.joined(separator: ", ")) open; restart the process, or have it reopen its databases"
        }
    }
}

/// The bytes that SQLite locks (os_unix.c and wal.c, "Shared-Memory Lock Bytes"); part of its file format.
enum SQLiteLocks {
    /// PENDING and RESERVED: a process writes or is about to.
    static let writing = 0x4000_0000...0x4000_0001
    static let shared = 0x4000_0002...0x4000_01ff
    /// The readers' marks, and the writer's lock.
    static let memory = (123...127, memoryWriting)
    static let memoryWriting = 120...120
}

/// A process that still reads an older generation: it has not moved its lease, so it has not reloaded.
package struct Laggard: Sendable, Equatable {
    package let process: ProcessFacts
    package let generation: String

    /// Waits until every lease is on the current generation; after the timeout, returns the processes with other leases. With a
    /// timeout of 0, no reader counts as late: readers of an older generation may finish undisturbed. A request to stop ends only
    /// the wait, because the update is complete.
    package static func wait(_ layout: StoreLayout, seconds: Int, shouldStop: () -> Bool) throws -> [Laggard] {
        guard seconds > 0 else { return [] }
        var backoff = Backoff(.seconds(seconds), longest: 20)
        while true {
            let laggards = try find(layout)
            if laggards.isEmpty || shouldStop() || !backoff.pause() { return laggards }
        }
    }

    /// Returns the processes with leases on other generations, except this process, which cannot reload while it waits here.
    private static func find(_ layout: StoreLayout) throws -> [Laggard] {
        let current = try Generation.currentName(layout)
        return try Generation.names(layout).filter { $0 != current }.flatMap { name in
            try LeaseFile.holders(of: name, layout).filter { $0.pid != ProcessFacts.ownPID }.map {
                Laggard(process: $0, generation: name)
            }
        }
    }

    package var text: String { "\(process.description) still reads generation \(generation)" }
}

internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import StepKit

/// A cache that belongs to no release: one database file that the app can refill.
///
/// A kill at any moment leaves either the old set of files or the new file. The new file is complete and synced before the old
/// one is removed, and one exchange of names replaces the main file. Sidecars that cannot be checkpointed are renamed first,
/// because SQLite would read them with the new file. Their new names contain the inode of their main file: if that file is still
/// in place, the next call knows that the set is incomplete.
package struct StandaloneCache {
    package enum Outcome: Equatable, Sendable {
        case ready
        /// The database was created again, for this reason. If the old file may be no cache of this app, its new path.
        case recreated(String, kept: String?)
    }

    /// How to treat a file that another process has open or locked.
    package enum Policy: Sendable {
        /// Replace the file: that process keeps the old file, which no longer has a name.
        case replaceOpen
        /// Replace only closed regular files, and nothing that belongs to a store.
        case refuse
    }

    /// The schema that the app expects, and how to create an empty database with it.
    package struct Expected {
        private let identity: Identity
        /// Creates the database at a path.
        let make: (String) throws -> Void

        var tables: Set<SQLName> { Set(identity.shape.tables.map { SQLName($0.name) }) }

        /// Takes the expected schema from SQL statements that create it.
        package init(sql: String) throws {
            let connection = try Connection.inMemory()
            do { try connection.execute(sql) } catch {
                throw MoultError(
                    .cacheSchema, .usage, what: "the schema of the cache cannot be created",
                    why: (error as? MoultError)?.why ?? "\(error)", now: "Correct the SQL.", cause: error)
            }
            try self.init(Identity(of: connection)) { path in
                let connection = try Connection(path: path, access: .readWriteCreate)
                try connection.execute(sql)
                try connection.close()
            }
            try connection.close()
        }

        /// Takes the expected schema from a prebuilt database.
        package init(template: String) throws {
            let connection = try Connection(path: template, access: .immutable)
            try self.init(Identity(of: connection)) { try Files.copy(template, to: $0, mode: 0o600) }
            try connection.close()
        }

        private init(_ identity: Identity, make: @escaping (String) throws -> Void) {
            (self.identity, self.make) = (identity, make)
        }

        func difference(to found: Identity) -> String? {
            if let difference = found.shape.diff(against: identity.shape).first { return difference }
            for (field, value, wanted) in [
                ("application_id", found.applicationID, identity.applicationID),
                ("user_version", found.userVersion, identity.userVersion),
            ] where wanted != 0 && wanted != value {
                return "its \(field) is \(value), not \(wanted)"
            }
            return nil
        }
    }

    /// The path as the caller wrote it, for messages.
    private let name: String
    private let path: String
    private let policy: Policy

    /// How many seconds to wait for another process that creates the same cache.
    private static let patience = 30

    package init(_ name: String, _ policy: Policy) throws {
        (self.name, self.policy) = (name, policy)
        path = try Files.absolute(name)
    }

    private var directory: String { Files.directory(of: path) }
    /// The names of temporary files follow from the cache's path, so that the next call finds leftover files after a crash.
    private var newFile: String { "\(directory)/.\(Files.name(of: path)).moult-new" }
    private var oldName: String { ".\(Files.name(of: path)).moult-old" }
    private func old(_ inode: UInt64, _ suffix: String) -> String { "\(directory)/\(oldName)-\(inode)\(suffix)" }

    /// Checks the cache like `prepare`, but for a file that SQLite can open gives it the content of the template in place. Its other
    /// content is kept if it has a table that the app does not expect.
    package func prepareInPlace(
        _ expected: Expected, template: String, _ replacement: () throws -> FileReplacement
    ) throws -> Outcome {
        _ = try Files.resolvedForOpening(directory)
        try refuseOthers()
        let (size, wal) = (try Files.facts(path)?.size ?? 0, try Sidecars.of(path).wal?.facts.size ?? 0)
        // A `-wal` beside a file in rollback mode belongs to another database.
        guard size > 0, try Files.facts(newFile) == nil,
            try DatabaseHeader.begins(Files.beginning(of: path, count: 16)),
            try wal == 0 || Connection.isWAL(ofFileAt: path), let why = try fault(expected)
        else {
            try replacement().clean()
            return try prepare(expected)
        }
        do {
            let result = try replacement().recreate(from: template) {
                try fault(expected)
            } isExpendable: { connection in
                // A damaged schema may have any table.
                do {
                    return expected.tables.isSuperset(
                        of: try SchemaShape(of: connection).tables.map { SQLName($0.name) })
                } catch let error as MoultError where error.code == .databaseCorrupt { return false }
            }
            return result.isChanged ? .recreated(why, kept: result.kept?.file) : .ready
        } catch let error as MoultError
            where error.code == .notReplaceable && (error.cause as? MoultError)?.code == .databaseCorrupt
        { return try prepare(expected) }
    }

    package func prepare(_ expected: Expected) throws -> Outcome {
        // Another user's link must not choose the directory whose files are replaced.
        _ = try Files.resolvedForOpening(directory)
        if policy == .refuse { try refuseOthers() }
        // The check also needs the lock, because another process may be replacing the file.
        let lock = try lock()
        defer { withExtendedLifetime(lock) {} }
        let fault = try fault(expected)
        if try fault == nil && Files.facts(newFile) == nil { return .ready }
        let kept = fault == nil ? nil : try replace(expected)
        try removeLeftovers()
        return fault.map { .recreated($0, kept: kept) } ?? .ready
    }

    // MARK: checking

    private func fault(_ expected: Expected) throws -> String? {
        if let inode = try Files.facts(path)?.inode,
            try SidecarSuffixes.all.contains(where: { try Files.facts(old(inode, $0)) != nil })
        {
            return "a process was killed while it replaced the file"
        }
        let pages: Fitness.Pages = policy == .refuse ? .quick : .ifLeftOpen
        switch try Fitness.of(path, pages: pages, judge: { try expected.difference(to: Identity(of: $0)) }) {
        case .fits: return nil
        case .missing: return policy == .refuse ? "the file was missing" : "the file did not exist"
        case .unfit(let why, _): return why
        case .unknown(let error):
            // The state of a locked database is unknown, and a failing disk must not be written to.
            if policy == .refuse { throw error }
            return error.why ?? error.what
        }
    }

    private func refuseOthers() throws {
        if let owner = try StoreLayout.owner(of: path) {
            throw MoultError(
                .notACache, .refused, what: "\(name) belongs to the store \(owner.store)",
                why: "only releases of the store may replace it",
                now: "Repair it with: \(run: owner.repair + ["--store", owner.store])")
        }
        guard let facts = try Files.facts(path) else { return }
        func refusal(_ why: String, _ now: Advice) -> MoultError {
            MoultError(.notACache, .refused, what: "\(name) cannot be used as a cache", why: why, now: now)
        }
        guard facts.kind == .file else { throw refusal("it is not a regular file", Files.moveAway(name)) }
        for suffix in SidecarSuffixes.all {
            if let facts = try Files.facts(path + suffix), facts.kind != .file {
                throw refusal("\(name)\(suffix) is not a regular file", Files.moveAway(name + suffix))
            }
        }
        guard try Files.isReadable(path) else {
            throw refusal(
                "this user has no permission to read the file", "Run the command as the owner of the file, or as root.")
        }
        if try Files.isMountPoint(path) {
            throw refusal(
                "it is a mount point, which cannot be replaced", "Mount the directory that contains it instead.")
        }
    }

    // MARK: replacing

    /// Replaces the file. Returns the path at which the old one is kept; nil if it is removed.
    private func replace(_ expected: Expected) throws -> String? {
        try removeNewFile()
        // Checked before the file is held, because opening it breaks the lease.
        let isOther = try policy == .refuse && isOtherFile(expected)
        let held = policy == .refuse ? try Aside.lease(on: path) : nil
        var kept: String?
        do {
            try expected.make(newFile)
            try setAttributesOfNewFile()
            if isOther { kept = try keepOldFile() }
            try exchange(held)
        } catch {
            // The first error is the one to report; the next call removes leftover files.
            try? removeNewFile()
            if let kept, (try? isStillAtPath(kept)) == true { try? Files.remove(kept) }
            throw error
        }
        try Files.syncDirectory(directory)
        return kept
    }

    /// Returns whether the file may be something other than this cache, given by mistake: it is not a database, or has a table that the
    /// app does not expect.
    private func isOtherFile(_ expected: Expected) throws -> Bool {
        guard let size = try Files.facts(path)?.size, size > 0 else { return false }
        guard try DatabaseHeader.begins(Files.beginning(of: path, count: 16)) else { return true }
        func tables(_ connection: Connection) throws -> Set<SQLName> {
            Set(try SchemaShape(of: connection).tables.map { SQLName($0.name) })
        }
        let found: Set<SQLName>
        do {
            // With and without the `-wal`, which may belong to another file.
            found = try tables(Connection(path: path, access: .immutable)).union(NonInvasiveReader.into(path, tables))
        } catch let error as MoultError where error.code == .databaseCorrupt || error.outcome == .busy { return false }
        return !found.isSubset(of: expected.tables)
    }

    /// Gives the old file a second name, with which it outlives the exchange.
    private func keepOldFile() throws -> String {
        let first = "\(path).old"
        // A process was killed before the exchange.
        if try isStillAtPath(first) { return first }
        let kept = try Files.firstFree(first)
        guard try Files.hardLinkIfPossible(path, at: kept) else {
            throw MoultError(
                .notACache, .refused, what: "\(name) cannot be used as a cache",
                why: "it may be another file, and this file system has no hard links with which moult keeps it",
                now: Files.moveAway(name))
        }
        try Files.syncDirectory(directory)
        return kept
    }

    /// Returns whether the kept name is only a second name of the file that is still at the cache's path.
    private func isStillAtPath(_ kept: String) throws -> Bool {
        guard let old = try Files.facts(kept) else { return false }
        return try Files.facts(path)?.isSameFile(old) ?? false
    }

    private func exchange(_ held: WriteLease?) throws {
        // The sidecars are renamed first: otherwise another process could read the new file with the rows of the old `-wal`.
        let inode = try Files.facts(path)?.inode ?? 0
        let sidecars = try SidecarSuffixes.all.filter { try Files.facts(path + $0) != nil }
        do {
            for suffix in sidecars { try Files.rename(path + suffix, to: old(inode, suffix)) }
            if !sidecars.isEmpty { try Files.syncDirectory(directory) }
            if try Files.renameIfFree(newFile, to: path) { return }
            try Files.exchange(newFile, path)
            guard let held, try !held.isUnbroken() else { return }
            // A process is about to open the old file, so the exchange is undone.
            try Files.exchange(newFile, path)
            throw InUse.error(name, advice: "Close that program, then run the command again.")
        } catch {
            for suffix in sidecars where try Files.facts(old(inode, suffix)) != nil {
                try Files.rename(old(inode, suffix), to: path + suffix)
            }
            throw error
        }
    }

    private func setAttributesOfNewFile() throws {
        guard policy == .refuse, let facts = try Files.facts(path), facts.kind == .file else {
            return try Files.seal(newFile, mode: 0o644)
        }
        if let why = try Files.reasonAgainstCopyingOwner(of: facts) {
            throw MoultError(
                .notACache, .refused,
                what: "\(name) cannot be replaced: a new file would have a different owner or group",
                why: why,
                now: "Run the command as the owner of the file, or as root.")
        }
        try Files.copyAttributes(from: path, to: newFile)
        try Files.syncFile(newFile)
    }

    /// Removes leftover files, and the staged new file last, because its presence shows that leftover files exist.
    private func removeLeftovers() throws {
        for name in try Files.list(directory) where name.hasPrefix(oldName) {
            try Files.removeTree("\(directory)/\(name)")
        }
        try removeNewFile()
    }

    private func removeNewFile() throws {
        for suffix in SidecarSuffixes.all + [""] { try Files.removeTree(newFile + suffix) }
    }

    // MARK: locking

    /// A file that only this user can open, and that exists only as long as the lock: any process that can read the directory could
    /// lock the directory.
    private var lockFile: String { "\(directory)/.\(Files.name(of: path)).moult-lock" }

    /// Locks a separate file, because the file itself is replaced. Returns nil if this user cannot create files in the directory,
    /// and therefore cannot replace the cache either.
    private func lock() throws -> FileLock? {
        if let facts = try Files.facts(lockFile), facts.kind == .link {
            throw MoultError(
                .locked, .refused, what: "the cache \(path) cannot be created",
                why: "its lock \(lockFile) is a symbolic link of user \(Files.userName(facts.owner))",
                now: "Find out who created it, then remove it: \(run: ["rm", lockFile])")
        }
        var backoff = Backoff(.seconds(Self.patience), longest: 10)
        repeat {
            do { if let lock = try FileLock.take(lockFile, .exclusive, isTemporary: true) { return lock } } catch let
                error as MoultError
            {
                guard Files.isDenied(error) else { throw error }
                // The lock of another user who may also write to the directory is waited for.
                if try Files.facts(lockFile) == nil || !Files.isWritable(directory) { return nil }
            }
        } while backoff.pause()
        let holders = try LockHolders.of(lockFile).map(\.description).joined(separator: ", ")
        throw MoultError(
            .locked, .busy, what: "the cache \(path) is being created",
            why: "the lock on \(lockFile)\(try Self.owner(of: lockFile)) is held by "
                + (holders.isEmpty ? "another process" : holders),
            now: "Try again later. If no moult command is running, remove the lock: \(run: ["rm", lockFile])")
    }

    private static func owner(of file: String) throws -> String {
        guard let owner = try Files.facts(file)?.owner, owner != geteuid() else { return "" }
        return ", which belongs to user \(Files.userName(owner)),"
    }
}

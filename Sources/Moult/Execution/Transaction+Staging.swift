internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// The staged files of an update in progress, and its journal.
extension Transaction {
    package var journal: Journal { Journal(directory: directory) }
    var unpacked: String { Staging.unpacked(in: directory) }
    /// Returns the path at which a member is staged, and creates its directory, because the names of migrations include
    /// directories.
    func place(of member: String) throws -> String {
        var directory = unpacked
        for part in member.pathParts().dropLast() {
            directory += "/\(part)"
            try Files.ensureDirectory(directory, mode: 0o700)
        }
        return "\(unpacked)/\(member)"
    }

    var waiting: String { "\(directory)/\(Self.waitingName)" }
    func waiting(_ path: String) -> String { Staging.waiting(path, in: directory) }
    var generation: String { "\(directory)/generation" }
    /// A copy of the release's manifest, for updates with steps that are not built in.
    var manifest: String { "\(directory)/manifest.json" }

    /// Creates the directories, which must not exist yet. Only the store's owner may read them, because their content is not
    /// verified yet.
    func create(_ plan: Plan) throws {
        try Files.makeDirectory(directory, mode: 0o700)
        for path in [unpacked, waiting, generation] { try Files.makeDirectory(path, mode: 0o700) }
        try journal.begin(plan)
        for path in plan.stagedPaths.filter({ $0.isAbsolutePath }) { try makeApart(path) }
    }

    /// Creates the staging directory for a cache outside the store, which may be on another file system. The cache's directory
    /// gets a tag that excludes it from backups.
    private func makeApart(_ path: String) throws {
        guard let apart = Staging.apart(path, directory) else { return }
        let root = Files.directory(of: path)
        try Files.ensureDirectory(root)
        try CacheTag.put(in: root)
        for directory in [StoreLayout.hidden(in: root), Files.directory(of: apart), apart] {
            try Files.ensureDirectory(directory, mode: 0o700)
            // Another user may have created the directory in the meantime.
            guard let facts = try Files.facts(directory), facts.isExclusive else {
                throw MoultError(
                    .custody, .refused, what: "caches cannot be staged in \(directory)",
                    why: "other users can change the files there",
                    now: "Set another \"cacheRoot\" in \(layout.settings).")
            }
        }
    }

    /// Removes the staged files and the records of an update that has ended, or was never decided. Its databases first lose the
    /// marker that only recovery needs; while an app has one of them locked, the records stay for the next command.
    package func remove() throws {
        // If the journal cannot be read, nothing is removed, because it might list files that were set aside.
        let state = try journal.read()
        let staged = try Removable(staging: self, state)
        for path in state.plan?.stagedPaths ?? [] {
            if let apart = Staging.apart(path, directory) { try Files.removeTree(apart) }
        }
        try journal.end()
        if let plan = state.plan, state.decided != nil, state.undoing == nil, try !removeMarkers(of: plan) { return }
        try staged.remove()
        try LinkedFiles(layout).refresh()
    }

    private func removeMarkers(of plan: Plan) throws -> Bool {
        let places = plan.effects.filter(\.leavesMarker).flatMap(\.change.traits.paths).map(layout.file)
        // Recovery would take a database without its marker for one that the update has not reached.
        if !places.isEmpty { try Files.syncDirectory(directory) }
        let isRemoved = try places.reduce(true) { try TransactionMarker.remove(id, at: $1) && $0 }
        // SQLite does not sync the removal of its journal, which would bring a marker back after the records are gone.
        for directory in Set(places.map { Files.directory(of: $0) }).sorted() { try Files.syncDirectory(directory) }
        return isRemoved
    }

    /// Returns whether this transaction created the directory of a generation. The seal in the directory names the transaction,
    /// even in a copied store.
    func hasCreated(_ directory: String) throws -> Bool {
        guard try Files.facts(directory)?.kind == .directory else { return false }
        let path = "\(directory)/\(Seal.fileName)"
        let seal: Seal?
        do { seal = try Files.read(path, limit: 1 << 24).map { try Seal(parsing: $0, source: path) } } catch {
            // A seal that cannot be read belongs to a damaged generation, which this transaction replaces.
            if (error as? MoultError)?.cause is Errno { throw error }
            return false
        }
        return seal?.transaction == id
    }

    /// Returns the manifest of the release that a plan installs, whether in place or still staged.
    func release(of plan: Plan) throws -> Manifest? {
        for directory in [layout.generation(plan.to.generation), generation] {
            let path = "\(directory)/\(Generation.manifestName)"
            guard let bytes = try Files.read(path, limit: Manifest.largest) else { continue }
            return try Manifest(parsing: bytes, as: .sealed, source: path)
        }
        return nil
    }
}

extension Effect {
    /// Whether the effect may leave a marker that must be removed at the end. A shared database keeps its marker.
    fileprivate var leavesMarker: Bool {
        switch change {
        case .replace(let new): ![.replaced, .rolledBack].contains(new.reason)
        case .migrate, .restoreRows: true
        default: false
        }
    }
}

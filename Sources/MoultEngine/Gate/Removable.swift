internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
package import MoultStore
internal import StepKit

/// A path that may be removed although it could contain the content of a writable database.
///
/// Values are created only in this file. Code that cleans up after an update, collects generations or empties quarantine must
/// obtain one, because `scripts/check-gate` finds other code that removes a directory of the store.
package struct Removable {
    private let path: String

    private init(_ path: String) { self.path = path }

    /// Removes everything. The record of a set is removed last, so that a crash leaves no content without a record; so is the
    /// directory by which the staged files of an update are recognized.
    func remove() throws {
        try Files.removeTree(path, last: [QuarantineRecord.fileName, Transaction.waitingName])
    }

    /// Removes a set in quarantine. The set is first renamed in one step, so that a crash does not leave half of it.
    package func removeSet() throws {
        let trash = "\(Files.directory(of: path))/\(Self.trashPrefix)\(Files.name(of: path))"
        try Files.removeTree(trash)
        try Files.rename(path, to: trash)
        try Files.removeTree(trash)
    }

    private static let trashPrefix = ".removed-"

    /// Removes leftovers of killed commands in a quarantine directory: partially removed sets, directories that are still
    /// empty, and unfinished records. Sets of interrupted updates stay.
    static func sweep(quarantine root: String, except unfinished: [String]) throws {
        for name in try Files.list(root) {
            let set = "\(root)/\(name)"
            if name.hasPrefix(trashPrefix) {
                try Files.removeTree(set)
                continue
            }
            guard try Files.facts(set)?.kind == .directory, !unfinished.contains(where: { name.hasPrefix("\($0)-") })
            else { continue }
            try Files.remove(Files.staged("\(set)/\(QuarantineRecord.fileName)"))
            try Files.remove("\(set)/\(QuarantineRecord.stagedRows)")
            if try Files.isEmpty(set) { try Files.removeTree(set) }
        }
    }

    /// A set in quarantine whose update has not ended. Nil unless its content is still at one of the paths where the database
    /// may be. `has` returns whether the present content includes all of the kept file.
    init?(pending directory: String, live: [String], has: (String) throws -> Bool) throws {
        guard let record = try QuarantineRecord(in: directory), record.isPending else {
            // Without a record, this directory was created just before a crash.
            let names = [QuarantineRecord.fileName, Files.name(of: Files.staged(QuarantineRecord.fileName))]
            let unwritten = try Files.hasOnly(directory, where: names.contains)
            guard unwritten, try Files.facts(directory) != nil,
                try Files.facts("\(directory)/\(QuarantineRecord.fileName)") == nil
            else { return nil }
            self.init(directory)
            return
        }
        let facts = try live.compactMap { try Files.factsThroughLinks($0) }
        // The kept file must be a hard link to the file in place, or a copy of which nothing is missing there. If another program has
        // put a different file in place since, the set may have the only copy of the old content.
        if let kept = try Self.kept(record, in: directory) {
            let isCopy = !facts.isEmpty && ![.reset, .undone].contains(record.reason)
            let file = "\(directory)/\(record.keptName)"
            guard
                try kept.isSame(asAnyOf: facts)
                    || live.contains(where: {
                        // The operator may have given the database a separate file since.
                        try Files.haveSameBytes(file, $0)
                    }) || isCopy && has(file)
            else { return nil }
        }
        self.init(directory)
    }

    /// A set in quarantine whose file is only another hard link to a file in place.
    init?(second directory: String, live: [String]) throws {
        let live = try live.compactMap { try Files.factsThroughLinks($0) }
        guard let record = try QuarantineRecord(in: directory), let kept = try Self.kept(record, in: directory),
            kept.isSame(asAnyOf: live)
        else { return nil }
        self.init(directory)
    }

    private static func kept(_ record: QuarantineRecord, in directory: String) throws -> FileFacts? {
        try Files.facts("\(directory)/\(record.keptName)")
    }

    /// The staged files of a transaction.
    init(staging transaction: Transaction, _ state: Journal.State) throws {
        if let plan = state.plan { try Self.keepDisplaced(by: plan, transaction, state.decided ?? [:]) }
        self.init(transaction.directory)
    }

    /// Keeps the files that a program has changed in a damaged generation, which the repaired one has replaced.
    package static func keepDisplaced(by plan: Plan, _ transaction: Transaction, _ inodes: [String: UInt64] = [:])
        throws
    {
        guard try Files.facts(transaction.generation)?.kind == .directory,
            try transaction.hasCreated(transaction.layout.generation(plan.to.generation), inodes)
        else { return }
        try ChangedGeneration(in: transaction.generation, transaction.layout).keep(by: transaction.id)
    }

    /// Keeps a regular file before a link takes its place, unless the update already keeps the file. Another program may have
    /// put it there since the update was interrupted.
    static func keepReplaced(_ path: String, _ transaction: Transaction, _ plan: Plan) throws {
        let place = transaction.layout.file(path)
        guard try Files.facts(place)?.kind == .file else { return }
        // After a power failure, a journal that SQLite had removed may be back. A file that cannot be drained moves with its
        // sidecars.
        if try !Sidecars.of(place).isEmpty {
            let drained = DrainedFile(place)
            _ = try? drained.hold()
            drained.release()
        }
        guard let facts = try Files.facts(place), facts.kind == .file else { return }
        // Rows that are still in a sidecar are not kept with the file.
        let hasRowsBeside = try SidecarSuffixes.withRows.contains {
            try Files.facts(place + $0).map { $0.size > 0 } ?? false
        }
        if try hasRowsBeside || !isKept(place, path, transaction, plan, facts) {
            try moveToQuarantine(place, path, transaction)
        }
    }

    /// Moves a file with its sidecars to quarantine.
    static func moveToQuarantine(_ waiting: String, _ path: String, _ transaction: Transaction) throws {
        let place = transaction.layout.file(path)
        let name = QuarantineRecord.keptName(of: place)
        let root = transaction.layout.quarantine(of: path)
        var directory = "\(root)/\(transaction.id)-\(name)"
        while try isOtherSet(directory, name) { directory += ".2" }
        try Files.ensureDirectory(root)
        try Files.ensureDirectory(directory, mode: 0o700)
        try QuarantineRecord.leftBehind(at: place).write(to: directory)
        for suffix in SidecarSuffixes.all + [""] where try Files.facts(waiting + suffix) != nil {
            try Files.rename(waiting + suffix, to: "\(directory)/\(name)\(suffix)")
        }
        try Files.syncDirectory(directory)
        try Files.syncDirectory(root)
        try Files.syncDirectory(Files.directory(of: waiting))
    }

    /// Returns whether a set has other content than an earlier attempt of `moveToQuarantine`, which was killed before it moved the
    /// main file.
    private static func isOtherSet(_ directory: String, _ name: String) throws -> Bool {
        if try Files.facts("\(directory)/\(name)") != nil { return true }
        guard let record = try QuarantineRecord(in: directory) else { return false }
        return record.reason != .replaced || record.keptName != name
    }

    /// Returns whether the update keeps a file of the same name and content: in the generation of adopted files, or in
    /// quarantine.
    private static func isKept(
        _ waiting: String, _ path: String, _ transaction: Transaction, _ plan: Plan?, _ facts: FileFacts
    ) throws -> Bool {
        let root = transaction.layout.quarantine(of: path)
        let name = QuarantineRecord.keptName(of: transaction.layout.file(path))
        var kept = try Files.list(root).filter { $0.hasPrefix("\(transaction.id)-") }.flatMap { set in
            // If a set has several main files, the names of the later ones end in a number.
            let files = try Files.list("\(root)/\(set)").filter { $0.hasPrefix(name) }
            return files.map { "\(root)/\(set)/\($0)" }
        }
        for case .adopt(path, let generation) in plan?.effects.map(\.change) ?? [] {
            kept.append("\(transaction.layout.generation(generation))/\(path)")
        }
        if try kept.contains(where: { try facts.isSameFile(Files.facts($0)) }) { return true }
        // Copying the store may have split one file into two.
        return try kept.contains { try Files.haveSameBytes($0, waiting) }
    }

    /// A generation chosen by the collector. Adopted files are never collected.
    init?(generation: String, in layout: StoreLayout) {
        guard !AdoptedGeneration.isName(generation) else { return nil }
        self.init(layout.generation(generation))
    }

    /// Moves the tree to the trash directory in one step before deleting it. Files that a program has changed are kept by `id`.
    func remove(by trash: Transaction, keepingChangesBy id: String) throws {
        try ChangedGeneration(in: path, trash.layout).keep(by: id)
        try Files.removeTree(trash.directory)
        try Files.setMode(path, 0o700)
        try Files.rename(path, to: trash.directory)
        try Files.removeTree(trash.directory)
    }

    /// Removes a store in which nothing was ever installed, and which therefore has no content; leaves any other store alone.
    /// The directory is also removed if it contains nothing else.
    package static func removeUnused(_ layout: StoreLayout) throws {
        guard try Files.facts(layout.settings) != nil, let lock = try StoreLock.takeIfFree(layout) else { return }
        defer { withExtendedLifetime(lock) {} }
        let places = [layout.generations, layout.transactions, layout.quarantine]
        guard try places.allSatisfy(Files.isEmpty), try Files.facts(layout.current) == nil else {
            return
        }
        try Files.remove(layout.settings)
        try Files.removeTree(layout.hidden)
        if try Files.isEmpty(layout.root) { try Files.removeEmpty(layout.root) }
    }

    /// A set in quarantine: any cache, but another set only if `isNamed` says that the operator asked for it.
    package init?(_ set: QuarantineShelf.Set, isNamed: Bool) {
        guard set.isCache || isNamed else { return nil }
        self.init(set.directory)
    }
}

extension FileFacts {
    fileprivate func isSame(asAnyOf others: [FileFacts]) -> Bool {
        others.contains { $0.inode == inode && $0.device == device }
    }
}

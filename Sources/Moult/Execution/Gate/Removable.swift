internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import StepKit

/// A path that may be removed although it could contain the content of a writable database.
/// Values are created only in this file. Code that cleans up after an update, collects generations or empties quarantine must
/// obtain one, because `scripts/check-gate` finds other code that removes a directory of the store.
package struct Removable {
    private let path: String

    private init(_ path: String) { self.path = path }

    /// Removes everything. The record of a set is removed last, so that a crash leaves no content without a record; so are the directory
    /// by which the staged files of an update are recognized, and the record that the update has ended.
    func remove() throws {
        try Files.removeTree(path, last: [Transaction.endedName, QuarantineRecord.fileName, Transaction.waitingName])
    }

    /// Removes a set in quarantine. The set is first renamed in one step, so that a crash does not leave half of it.
    func removeSet() throws {
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

    /// A set that an update put into quarantine before its decision. `has` returns whether nothing of the kept file is missing
    /// elsewhere; otherwise the set may have the only copy of the old content.
    init?(begun directory: String, has: (_ kept: String) throws -> Bool) throws {
        let record = try QuarantineRecord(in: directory)
        let name = record?.keptName ?? ""
        guard try Self.hasOnlyRecords(directory, and: name) else { return nil }
        let kept = "\(directory)/\(name)"
        if record != nil, try Files.facts(kept) != nil, try !has(kept) { return nil }
        self.init(directory)
    }

    init?(emptied directory: String) throws {
        guard try Self.hasOnlyRecords(directory, and: "") else { return nil }
        self.init(directory)
    }

    /// Returns whether a set exists and has no file but records of moult, and possibly the given one.
    private static func hasOnlyRecords(_ directory: String, and name: String) throws -> Bool {
        let record = QuarantineRecord.fileName
        let names = [
            record, Files.name(of: Files.staged(record)), QuarantineRecord.salvaged, QuarantineRecord.salvageReport,
            name,
        ]
        return try Files.facts(directory) != nil && Files.hasOnly(directory, where: names.contains)
    }

    init(staging transaction: Transaction, _ state: Journal.State) throws {
        if let plan = state.plan { try Self.keepDisplaced(by: plan, transaction) }
        if state.undoing != nil { try Self.keepChanges(of: transaction) }
        self.init(transaction.directory)
    }

    /// Keeps the files that a program has changed in a damaged generation, which the repaired one has replaced.
    static func keepDisplaced(by plan: Plan, _ transaction: Transaction) throws {
        guard try Files.facts(transaction.generation)?.kind == .directory,
            try transaction.hasCreated(transaction.layout.generation(plan.to.generation))
        else { return }
        try keepChanges(of: transaction)
    }

    /// Keeps the files that a program has changed in a generation that was in service, and is not any more.
    private static func keepChanges(of transaction: Transaction) throws {
        guard try Files.facts(transaction.generation)?.kind == .directory else { return }
        try ChangedGeneration(in: transaction.generation, transaction.layout).keep(by: transaction.id)
    }

    init(generation: String, in layout: StoreLayout) { self.init(layout.generation(generation)) }

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
    static func removeUnused(_ layout: StoreLayout) throws {
        guard try Files.facts(layout.settings) != nil, let lock = try StoreLock.takeIfFree(layout) else { return }
        defer { withExtendedLifetime(lock) {} }
        let places = [layout.generations, layout.transactions, layout.quarantine]
        guard try places.allSatisfy(Files.isEmpty), try Files.facts(layout.current) == nil else { return }
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

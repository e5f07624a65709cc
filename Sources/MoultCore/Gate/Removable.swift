internal import MoultBasics
internal import MoultFiles
internal import StepKit

/// A path that may be removed although the content of a writable database could be there.
///
/// Only this file makes one. Code that cleans up after an update, collects generations or empties quarantine asks for
/// one, and has no other way to remove a tree of the store.
struct Removable {
    private let path: String

    private init(_ path: String) { self.path = path }

    func remove() throws { try Files.removeTree(path) }

    /// A set in quarantine whose update has not ended: nil unless the database is still in its place without it.
    init?(pending directory: String) throws {
        guard let record = try QuarantineRecord(in: directory), record.isPending else {
            // Without a record it is a directory that was made just before a crash.
            let unwritten = try Files.list(directory).allSatisfy { $0.hasPrefix(QuarantineRecord.fileName) }
            guard unwritten, try Files.facts(directory) != nil,
                try Files.facts("\(directory)/\(QuarantineRecord.fileName)") == nil
            else { return nil }
            self.init(directory)
            return
        }
        let kept = try Files.facts("\(directory)/\(Files.name(of: record.path))")
        let live = try Files.factsThroughLinks(record.path)
        // A second name of the very file that is in place, or a copy of a file that was not touched.
        let isSame = kept.map { $0.inode == live?.inode && $0.device == live?.device } ?? true
        let isCopy = kept.map { $0.links == 1 && live != nil && record.reason != .reset } ?? true
        guard isSame || isCopy else { return nil }
        self.init(directory)
    }

    /// What a transaction staged. Old content that an exchange put there is moved to quarantine first, unless the
    /// update's decision says that it is expendable.
    init(staging transaction: Transaction, _ state: Journal.State) throws {
        for path in state.plan?.exchanged ?? [] { try Self.secure(path, transaction, state) }
        self.init(transaction.directory)
    }

    /// A staged copy of a database, and its sidecars, which recovery makes again.
    init?(staged path: String, suffix: String, _ transaction: Transaction, _ state: Journal.State) throws {
        try Self.secure(path, transaction, state)
        guard try Files.facts(transaction.waiting(path) + suffix) != nil else { return nil }
        self.init(transaction.waiting(path) + suffix)
    }

    /// Old content where a file was staged is moved to quarantine, unless the decision says that it is expendable.
    private static func secure(_ path: String, _ transaction: Transaction, _ state: Journal.State) throws {
        let waiting = transaction.waiting(path)
        guard let facts = try Files.facts(waiting) else { return }
        let isStaged = state.decided.map { $0["waiting/\(path)"] == facts.inode } ?? true
        if isStaged || state.expendable[path] != nil { return }
        try shelve(waiting, path, transaction, facts)
    }

    private static func shelve(_ waiting: String, _ path: String, _ transaction: Transaction, _ facts: FileFacts) throws
    {
        let name = Files.name(of: path)
        let root = transaction.layout.quarantine(of: path)
        // The content may have its name in quarantine already.
        for set in try Files.list(root) where set.hasPrefix("\(transaction.id)-") {
            for file in try Files.list("\(root)/\(set)") {
                let kept = try Files.facts("\(root)/\(set)/\(file)")
                if (kept?.device, kept?.inode) == (facts.device, facts.inode) { return }
            }
        }
        let directory = "\(root)/\(transaction.id)-\(name)"
        try Files.ensureDirectory(root)
        try Files.ensureDirectory(directory, mode: 0o700)
        try QuarantineRecord(
            database: name, kind: .user, path: transaction.layout.file(path),
            why: "an interrupted update left it behind", reason: .replaced, release: ""
        ).write(to: directory)
        try Files.rename(waiting, to: "\(directory)/\(name)")
        try Files.syncDirectory(directory)
        try Files.syncDirectory(root)
    }

    /// A generation that the collector chose. Files from before moult are never collected.
    init?(generation: String, in layout: StoreLayout) {
        guard !generation.hasPrefix(Generation.adopted) else { return nil }
        self.init(layout.generation(generation))
    }

    /// Moves the tree out of sight in one step first.
    func remove(by trash: Transaction) throws {
        try Files.removeTree(trash.directory)
        try Files.setMode(path, 0o700)
        try Files.rename(path, to: trash.directory)
        try Files.removeTree(trash.directory)
    }

    /// A set in quarantine: caches by the operator's limits, anything else only if the operator named it.
    init?(_ set: QuarantineShelf.Set, isNamed: Bool) {
        guard set.isCache || isNamed else { return nil }
        self.init(set.directory)
    }
}

internal import MoultBasics
internal import MoultFiles
import MoultRows
package import MoultSQLite
package import StepKit

/// Replaces the content of a file with that of another file, or restores content that it had before. Needs no store and no release.
package struct FileReplacement {
    package let file: ReplacedFile
    private let watcher: Watcher
    /// How many seconds to wait for another replacement of the file.
    private let wait: Int
    private let isDry: Bool

    package init(_ file: ReplacedFile, wait: Int, isDry: Bool, _ watcher: Watcher) {
        (self.file, self.wait, self.isDry, self.watcher) = (file, wait, isDry, watcher)
    }

    package struct Result: Sendable {
        /// Whether the content of the file differs from the one that it had, or would differ after a dry run.
        package var isChanged = true
        /// The size of the new content.
        package var size = 0
        package var fates: [RowFate] = []
        /// The set with the content that was replaced; nil in a dry run, and if nothing changed.
        package var kept: KeptSets.Set?
        /// The set with the content that was restored.
        package var restored: KeptSets.Set?
        /// The free space that the command needs, in bytes.
        package var needs = 0
        package var free = 0
    }

    /// Replaces the content. `consent` gets the reason why the two files may have been swapped, and throws if the user does not want
    /// to go on.
    package func replace(by new: NewContent, consent: (String) throws -> Void) throws -> Result {
        try file.requireReplaceable()
        try new.requireOther(than: file)
        try new.requireSelectable(in: file)
        return try working { work in
            var space = try ReplacementSpace(file, new: new.file, isStaged: true)
            try space.require()
            let staged = "\(work)/new.db"
            try new.stage(to: staged, for: file, watcher)
            return try rewriting(in: work) { rewrite in
                try rewrite.copyOld()
                try new.requireReadable(in: rewrite.copy, of: file)
                let doubt = try new.reasonToDoubt(staged, rewrite.copy, file)
                try new.explaining(file) { try rewrite.prepare(staged, isStaged: true, carrying: new.rules) }
                var result = Result(size: try Files.facts(rewrite.new)?.size ?? 0, fates: rewrite.fates)
                space.setNew(result.size)
                (result.needs, result.free) = (space.needs, space.free)
                if rewrite.isNeedless {
                    // An interrupted command has replaced the content.
                    if !isDry, let set = try file.sets.undoable().last, set.isBegun {
                        rewrite.endInterrupted()
                        try file.sets.complete(set)
                    }
                    result.isChanged = false
                    return result
                }
                if isDry { return result }
                // A repeated command was allowed before.
                let isRepeated = try file.sets.all().last?.isBegun ?? false
                if let doubt, !isRepeated { try consent(doubt) }
                try space.requireRest()
                let record = record(.replaced, why: "\(new.file) replaced it")
                result.kept = try write(rewrite, record, in: work)
                result.fates = rewrite.fates
                return result
            }
        }
    }

    /// Restores the newest content to which no undo has gone back yet. Keeps the present content.
    package func undo() throws -> Result {
        try file.requireReplaceable()
        guard let newest = try file.sets.undoable().last else {
            throw try nothingToUndo(
                file.sets.all().isEmpty ? "it has not been replaced" : "every replacement was undone")
        }
        return try restore(newest, .undone) { try target($0) }
    }

    /// Restores the content of a set. The next undo goes back to the present content.
    package func restore(_ set: KeptSets.Set) throws -> Result {
        try file.requireReplaceable()
        return try restore(set, .replaced) { (set, try KeptSets.has(set, $0)) }
    }

    /// Sets the present content aside, which may be damaged, and restores that from before the last replacement.
    package func reset(why: String) throws -> Result {
        try file.requireReplaceable()
        guard let newest = try file.sets.undoable().last else {
            throw file.refusal(
                "no content from before a replacement is kept",
                "Restore a backup, or replace it: \(moult: "replace", file.name, "NEW.db")")
        }
        return try restore(newest, .reset, why: why) { (newest, try KeptSets.has(newest, $0)) }
    }

    /// Restores the content of a set, which `choose` selects when it knows the present content. `first` is the set that it will probably
    /// be.
    private func restore(
        _ first: KeptSets.Set, _ reason: KeptReason, why: String? = nil,
        choose: (_ copy: String) throws -> (set: KeptSets.Set, isDone: Bool)
    ) throws -> Result {
        try working { work in
            let space = try ReplacementSpace(file, new: first.file ?? "", isStaged: false)
            try space.require()
            return try rewriting(in: work) { rewrite in
                try rewrite.copyOld()
                var result = Result(needs: space.needs, free: space.free)
                let (target, isDone) = try choose(rewrite.copy)
                result.restored = target
                guard !isDone, let kept = target.file else {
                    if isDone, !isDry, reason == .undone { rewrite.endInterrupted() }
                    result.isChanged = false
                    return result
                }
                result.size = try Files.facts(kept)?.size ?? 0
                if isDry { return result }
                try rewrite.prepare(kept, isStaged: false)
                var record = record(reason, why: why ?? "\(target.id) was restored")
                if reason == .undone { record.restored = target.number }
                result.kept = try write(rewrite, record, in: work)
                return result
            }
        }
    }

    /// Empties a cache: gives the file the content of a template, of which nothing is kept unless the file may be something else than
    /// this cache. `fault` is asked again while no other command replaces the file; nil means that the file is as it must be.
    package func recreate(
        from template: String, fault: () throws -> String?, isExpendable: (Connection) throws -> Bool
    ) throws -> Result {
        try file.requireReplaceable()
        return try working { work in
            guard try fault() != nil else { return Result(isChanged: false) }
            return try rewriting(in: work) { rewrite in
                let staged = "\(work)/new.db"
                try Files.copy(template, to: staged, mode: 0o600)
                try rewrite.prepare(staged, isStaged: true)
                let record = record(.unfitCache, why: "a new, empty cache replaced it")
                return Result(kept: try write(rewrite, record, in: work, isExpendable: isExpendable))
            }
        }
    }

    /// Removes the files that a killed command left.
    package func clean() throws {
        guard try Files.facts(file.sets.directory) != nil, try !file.sets.hasOnlySets() else { return }
        try working { _ in }
    }

    /// Removes sets, while no other command replaces the file.
    package func remove(_ sets: [KeptSets.Set]) throws {
        try working { _ in
            for set in sets { try file.sets.remove(set) }
        }
    }

    /// Returns the set to restore, and whether an interrupted undo has already restored it. The set of an interrupted replacement that
    /// changed nothing has the present content, and is passed over.
    private func target(_ copy: String) throws -> (set: KeptSets.Set, isDone: Bool) {
        let (all, sets) = (try file.sets.all(), try file.sets.undoable())
        if let pending = all.last, let record = pending.record, record.reason == .undone, pending.isBegun,
            let set = sets.first(where: { $0.number == record.restored })
        {
            guard try KeptSets.has(set, copy) else { return (set, false) }
            if !isDry { try file.sets.complete(pending) }
            return (set, true)
        }
        guard let set = try sets.last(where: { try !KeptSets.has($0, copy) }) else {
            throw try nothingToUndo("it already has its old content")
        }
        return (set, false)
    }

    private func write(
        _ rewrite: FileRewrite, _ record: QuarantineRecord, in work: String,
        isExpendable: (Connection) throws -> Bool = { _ in false }
    ) throws -> KeptSets.Set? {
        var kept: (set: KeptSets.Set, isNew: Bool)?
        try rewrite.write(
            keep: { kept = try file.sets.keep($0, record, in: work) },
            giveUp: { if let kept, kept.isNew { try file.sets.remove(kept.set) } },
            isExpendable: isExpendable)
        guard var set = kept?.set else { return nil }
        // The next command completes a set whose content was replaced.
        rewrite.afterCommit { set = try file.sets.complete(set) }
        return set
    }

    private func record(_ reason: KeptReason, why: String) -> QuarantineRecord {
        QuarantineRecord(
            database: Files.name(of: file.path), kind: .shared, path: file.path, why: why, reason: reason, release: "")
    }

    private func working<R>(_ body: (String) throws -> R) throws -> R {
        do { return try file.working(wait: wait, stop: watcher.stopIfAsked, body) } catch let error as MoultError
            where error.sqlite?.resultCode == .full || error.chain.contains(where: { $0 as? Errno == .noSpace })
        {
            // Another program has used the space in the meantime.
            throw MoultError(
                .space, .refused, what: "\(file.name) was not changed", why: "the disk is full",
                now: ReplacementSpace.advice(file), cause: error)
        }
    }

    private func rewriting(in work: String, _ body: (FileRewrite) throws -> Result) throws -> Result {
        let rewrite = try FileRewrite(file, in: work, isDry: isDry, watcher)
        let result = Swift.Result { try body(rewrite) }
        // The first error is the one to report.
        if case .failure = result { try? rewrite.close() } else { try rewrite.close() }
        return try result.get()
    }

    private func nothingToUndo(_ why: String) throws -> MoultError {
        let others = try file.replacedFilesBeside().filter { $0 != Files.name(of: file.path) }
        let isThere = try Files.facts(file.sets.directory) != nil
        return MoultError(
            .notReplaceable, .refused, what: "nothing to undo for \(file.name)",
            why: isThere
                ? why : "`moult replace` keeps old copies in \(file.sets.directory), which does not exist",
            now: (isThere
                ? "To see the old contents: \(moult: "replace", "--list", file.name)."
                : "Specify the file that was replaced.")
                + (others.isEmpty
                    ? "" : " In the same directory, there are old copies of \(others.joined(separator: ", "))."))
    }
}

/// The free space that a replacement needs on the file system of the file, at the moment when it needs most.
struct ReplacementSpace {
    private let file: ReplacedFile
    /// The size of the present content, which is copied, and that of the file without its `-wal`.
    private let (old, main): (Int, Int)
    private var new: Int
    private let isStaged: Bool
    private let isWAL: Bool
    private let (pageSize, newPageSize): (Int, Int)
    let free: Int

    /// For directories, records, and blocks of the file system.
    private static let overhead = 256 << 10

    init(_ file: ReplacedFile, new path: String, isStaged: Bool) throws {
        let (present, other) = (try Self.size(of: file.path), try Self.size(of: path))
        (self.file, self.isStaged, old, new, isWAL) = (file, isStaged, present.size, other.size, present.isWAL)
        (pageSize, newPageSize) = (present.page, other.page)
        main = try Files.facts(file.path)?.size ?? 0
        free = try Files.freeSpace(Files.directory(of: file.path))
    }

    mutating func setNew(_ size: Int) { new = size }

    private static func size(of path: String) throws -> (size: Int, page: Int, isWAL: Bool) {
        let size = try Files.factsThroughLinks(path)?.size ?? 0
        if size <= 1 { return (size, 4096, false) }
        do {
            return try NonInvasiveReader.into(path) {
                let header = try $0.header()
                return (Int(try $0.int("PRAGMA page_count")) * header.pageSize, header.pageSize, header.isWAL)
            }
        } catch let error as MoultError where error.code == .databaseCorrupt { return (size, 4096, false) }
    }

    /// The private copies, and the pages in the journal or the `-wal`, each with its header.
    private var written: Int {
        // Another page size means that the journal gets all pages.
        let pages = isWAL ? new : pageSize == newPageSize ? min(old, new) : max(old, new)
        let log = pages + pages / min(pageSize, newPageSize) * (isWAL ? 24 : 8)
        // The staged file is removed before the checkpoint of the `-wal`.
        return isWAL ? log + max(0, growth - staged) : log + growth
    }
    private var growth: Int { max(0, new - main) }
    private var staged: Int { isStaged || isWAL && pageSize != newPageSize ? new : 0 }

    var needs: Int { old + staged + written + Self.overhead }

    func require() throws { if needs > free { throw refusal(needs, free) } }

    /// Throws if the space that is left after the private copies were made is not enough.
    func requireRest() throws {
        let (rest, free) = (written, try Files.freeSpace(Files.directory(of: file.path)))
        if rest > free { throw refusal(rest, free) }
    }

    private func refusal(_ needs: Int, _ free: Int) -> MoultError {
        MoultError(
            .space, .refused, what: "not enough space for replacing \(file.name)",
            why: "the command needs \(ByteCount(needs)), but only \(ByteCount(free)) is free",
            now: "Nothing was changed. \(Self.advice(file))")
    }

    static func advice(_ file: ReplacedFile) -> Advice {
        "Free space on the file system of \(Files.directory(of: file.path)). To see the old copies: "
            + "\(moult: "replace", "--list", file.name)"
    }
}

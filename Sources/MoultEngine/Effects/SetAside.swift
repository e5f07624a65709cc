internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// Sets a writable database aside, and puts the fresh one in its place.
///
/// A database that SQLite can open is drained first, so that it is one file, which one exchange takes out of use. A damaged
/// one is set aside with all its sidecar files: first each file of the set gets its name in quarantine, then the names of the
/// sidecars are removed, and the last step exchanges the main file. With the main file first, a process that opens the path
/// in between lets SQLite remove a `-wal` full of rows that does not belong to the fresh file. If a link is to take its
/// place, no exchange is needed: the link replaces the main file's name.
package final class SetAside: WritableEffect {
    let effect: Effect
    let place: String
    /// The set's own directory.
    let directory: String
    /// Where the fresh file waits.
    let fresh: String
    private var record: QuarantineRecord
    /// The file that was there when the update was decided; nil before the decision.
    private let recorded: UInt64?
    /// In a copied store, where inodes say nothing: the digest by which the staged file is known; otherwise nil.
    private let freshDigest: String?
    /// The mark of the fresh file as it was when the update was decided; nil before the decision.
    private let recordedFresh: UInt64?
    /// Where it was staged what could still be read.
    let salvaged: String
    private var readable: Bool?
    /// The file, if it could be drained.
    private let drained: DrainedFile
    /// Keeps other processes away from a file that could not be drained.
    private var lease: WriteLease?
    private var held: WriteLease? { drained.lease ?? lease }

    /// Whether the content is that of the installed database: a journal or `-wal` of another one, too, can be read without
    /// an error.
    private let fits: () throws -> Bool

    package static let salvagedName = "salvaged.db"
    package static let reportName = "salvaged.json"
    /// The fresh file as it was when it took the place.
    private var put: FileFacts?
    private static let suffixes = ["-journal", "-wal", "-shm"]

    init(
        _ effect: Effect, place: String, directory: String, fresh: String, record: QuarantineRecord, salvaged: String,
        recorded: UInt64?, recordedFresh: UInt64?, freshDigest: String? = nil,
        fits: @escaping () throws -> Bool = { true }
    ) {
        self.fits = fits
        (self.effect, self.place, self.directory, self.fresh) = (effect, place, directory, fresh)
        (self.record, self.salvaged, self.recorded) = (record, salvaged, recorded)
        (self.recordedFresh, self.freshDigest) = (recordedFresh, freshDigest)
        drained = DrainedFile(place)
    }

    private static let mostAttempts = 5

    static func key(_ path: String) -> String { "original/\(path)" }

    /// The inode by which recovery knows the file that is still to be set aside; 0 for no file.
    var facts: [String: UInt64] {
        get throws {
            guard case .quarantine(let path, _, _) = effect.change else { return [:] }
            return [
                Self.key(path): try recorded ?? (isOriginalInPlace() ? current() : Files.facts(kept(""))?.inode ?? 0)
            ]
        }
    }

    private func current() throws -> UInt64 { try Files.facts(place)?.inode ?? 0 }
    private var original: UInt64 { get throws { try recorded ?? decided ?? current() } }
    private var decided: UInt64?

    /// The digest from before the file was leased: reading the file for it would break the lease, and wait for that.
    private var wasInPlace: Bool?

    /// Whether the file that is to be set aside is still at its path.
    private func isOriginalInPlace() throws -> Bool {
        if let wasInPlace, held != nil { return wasInPlace }
        guard let freshDigest, recorded != 0 else { return try current() == original }
        // As long as the staged file waits, the two were not exchanged.
        if try Files.facts(fresh) != nil { return try Transaction.isPublished(fresh, freshDigest) }
        guard try Files.facts(kept("")) != nil else { return true }
        return try isSameContent(place, kept(""))
    }

    /// Whether the original is where the staged file was.
    private func isOriginalStaged() throws -> Bool {
        guard let left = try Files.facts(fresh) else { return false }
        guard let freshDigest, recorded != 0 else { return try left.inode == original }
        return try !Transaction.isPublished(fresh, freshDigest)
    }

    private func isSameContent(_ one: String, _ other: String) throws -> Bool {
        guard let a = try Files.facts(one), let b = try Files.facts(other), a.kind == b.kind else { return false }
        if a.inode == b.inode, a.device == b.device { return true }
        // A copy of the store may have made two files of one.
        return try freshDigest != nil && Files.haveSameBytes(one, other, leased: held)
    }

    // MARK: keeping other processes out

    /// No process may have the database open when the names change: what it wrote meanwhile would be set aside, too.
    func hold() throws {
        decided = try current()
        // After a crash it may be done already.
        let isInPlace = try isOriginalInPlace()
        if recorded != nil || freshDigest != nil, !isInPlace { return }
        wasInPlace = isInPlace
        guard try Files.facts(place)?.kind == .file else { return }
        if try isReadable() {
            record.rows = try Self.rows(place)
            if try Self.drain(drained) { return }
        }
        do { lease = try WriteLease.take(place) } catch {
            // Not our file, or not even readable: then the kernel grants no lease, but open files can still be seen.
            if try OpenFiles.holders(of: [place]).isEmpty { return }
        }
        if lease == nil { throw inUse() }
    }

    /// Whether draining keeps everything. It is asked before the decision, and again when the file is held.
    func isReadable() throws -> Bool {
        if let readable { return readable }
        let isReadable = try Self.isReadable(place) && fits()
        readable = isReadable
        return isReadable
    }

    private func inUse() -> MoultError { InUse.error(place, advice: Self.advice) }

    /// Where a link follows, a process that asked for the file meanwhile would go on writing to what is in quarantine.
    func stage() throws {
        if put == nil, let held, try !held.isWhole() { throw inUse() }
    }

    func finish() throws { try release() }

    func release() throws {
        lease = nil
        drained.release()
    }

    // MARK: there

    func perform() throws {
        // In a copied store a file that is gone may be in quarantine already.
        let isNothing = try freshDigest == nil ? original == 0 : recorded == 0
        if isNothing, try Files.facts(place) == nil, try Sidecars.of(place).isEmpty { return }
        try make(directory)
        var record = record
        let owner = try Files.facts(place).flatMap { $0.kind == .file ? QuarantineRecord.Owner($0) : nil }
        // After a crash the first attempt may have written it.
        let earlier = try QuarantineRecord(in: directory)
        (record.owner, record.rows) = (owner ?? earlier?.owner, record.rows ?? earlier?.rows)
        try record.write(to: directory)
        let there = try Files.facts(place)
        if try isOriginalInPlace() {
            // Each step on the disk before the next: a name in quarantine before the one next to the database goes, and
            // that before the fresh file comes, which would be read with it.
            if let there, there.kind == .file { _ = try giveName(place, kept("")) }
            let left = try Self.suffixes.compactMap { suffix in try name(suffix).map { (place + suffix, $0) } }
            try syncQuarantine()
            for (sidecar, name) in left { try setAside(sidecar, name) }
            if !left.isEmpty { try Files.syncDirectory(Files.directory(of: place)) }
            if there != nil {
                if try Files.facts(fresh) != nil {
                    try exchange()
                } else if try Files.facts(kept("")) == nil {
                    // The link that follows would replace the only name.
                    try Files.rename(place, to: kept(""))
                }
            }
        }
        try tidy()
        for name in try Files.list(salvaged) { try Files.rename("\(salvaged)/\(name)", to: "\(directory)/\(name)") }
        for changed in [directory, Files.directory(of: directory), Files.directory(of: place)] {
            try Files.syncDirectory(changed)
        }
    }

    private func exchange() throws {
        // The app must be able to use the fresh file as it used the old one. What cannot be given is the operator's.
        if try Files.facts(place)?.kind == .file, try Files.canGiveAttributes(of: place) == nil {
            try Files.copyAttributes(from: place, to: fresh)
        }
        put = try Files.facts(fresh)
        for _ in 0..<Self.mostAttempts {
            try Files.exchange(fresh, place)
            guard let held, try !held.isWhole() else {
                wasInPlace = nil
                // In a copied store the old file is known by its digest.
                if freshDigest != nil { try release() }
                return
            }
            // A process is about to open the old file, and would find the fresh one's sidecars next to it.
            try Files.exchange(fresh, place)
            // If it only reads, all of the content is still in the one file.
            guard drained.lease != nil, try drained.holdAgain() else { break }
        }
        put = nil
        throw inUse()
    }

    /// What came out of the exchange has its name in quarantine, or gets it now: a directory, or another user's file.
    private func tidy() throws {
        guard try isOriginalStaged() else { return }
        if try Files.facts(kept("")) == nil {
            try Files.rename(fresh, to: kept(""))
        } else if try isSameContent(kept(""), fresh) {
            try Files.remove(fresh)
        } else {
            // In a copied store the name in quarantine is a separate file, and the other one may have been written to.
            try Files.rename(fresh, to: freeName(""))
        }
    }

    /// The directories that may have been made for this, up to the one that is always there.
    private func syncQuarantine() throws {
        var changed = directory
        for _ in 0..<4 {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    /// Returns a sidecar its name in quarantine; nil if it does not exist.
    private func name(_ suffix: String) throws -> String? {
        let sidecar = place + suffix
        guard let facts = try Files.facts(sidecar) else { return nil }
        // One of the same name may be there from before a crash, after which a process opened the database once more.
        let name = try isSameContent(kept(suffix), sidecar) ? kept(suffix) : freeName(suffix)
        if facts.kind == .file { _ = try giveName(sidecar, name) }
        return name
    }

    private func freeName(_ suffix: String) throws -> String {
        var name = kept(suffix)
        var number = 2
        while try Files.facts(name) != nil {
            name = "\(kept(suffix)).\(number)"
            number += 1
        }
        return name
    }

    /// Takes a sidecar away, whose name in quarantine is on the disk; what can have one name only is renamed.
    private func setAside(_ sidecar: String, _ name: String) throws {
        if try Files.facts(name) != nil { try Files.remove(sidecar) } else { try Files.rename(sidecar, to: name) }
    }

    /// A second name for a file; false where that cannot be, for instance because it is another user's file.
    private func giveName(_ file: String, _ name: String) throws -> Bool {
        if try Files.facts(name) != nil { return true }
        return try Files.hardLinkIfPossible(file, at: name)
    }

    // MARK: and back

    /// Restores the whole set. Files that are in its place by now are set aside in turn, and nothing is lost.
    func revert() throws {
        wasInPlace = nil
        if freshDigest != nil { try release() }
        try tidy()
        if try Files.facts(directory) == nil { return try finish() }
        if try !isOriginalInPlace(), try isOriginalKept() { try bringBack() }
        try tidyUndone()
        for suffix in Self.suffixes where try Files.facts(kept(suffix)) != nil && Files.facts(place + suffix) == nil {
            try Files.rename(kept(suffix), to: place + suffix)
        }
        try Files.syncDirectory(Files.directory(of: place))
        try removeIfEmpty()
        try finish()
    }

    /// Whether quarantine has the file that is to come back.
    private func isOriginalKept() throws -> Bool {
        guard let facts = try Files.facts(kept("")) else { return false }
        return try freshDigest != nil || facts.inode == original
    }

    private func bringBack() throws {
        var new: DrainedFile?
        if try !isUntouched() {
            new = try keepNew()
        } else if freshDigest != nil {
            // In a copied store recovery knows the fresh file by where it waits.
            try Files.rename(place, to: fresh)
        }
        // A process that opens it from now on waits until its sidecars are there, too. Without a lease of the kernel
        // only the moment between two renames is left.
        if held == nil { lease = try? WriteLease.take(kept("")) }
        // The installed file may be gone, or moved with its sidecars.
        guard try Files.facts(place) != nil else { return try Files.rename(kept(""), to: place) }
        try Files.exchange(kept(""), place)
        guard let new, try !new.isHeld() else { return }
        try Files.exchange(kept(""), place)
        throw inUse()
    }

    /// What came out of the exchange has its name in a set of its own, or is as it was staged.
    private func tidyUndone() throws {
        let original = try original
        guard freshDigest == nil, original != 0, try current() == original, let left = try Files.facts(kept("")),
            left.kind == .file, left.inode != original
        else { return }
        if left.links > 1 {
            try Files.remove(kept(""))
        } else if try Files.facts(fresh) == nil {
            try Files.rename(kept(""), to: fresh)
        }
    }

    /// The file in place by now may have rows of an app: it becomes a set of its own. Returns the file while it is held; nil
    /// if it was moved with its sidecars, because it could not be drained.
    private func keepNew() throws -> DrainedFile? {
        guard let facts = try Files.facts(place) else { return nil }
        let new = DrainedFile(place)
        let isDrained = try facts.kind == .file && Self.isReadable(place) && Self.drain(new)
        let set = try freeDirectory()
        try make(set)
        var record = record
        (record.reason, record.why) = (.undone, "an undo after a crash replaced it")
        (record.owner, record.isPending) = (QuarantineRecord.Owner(facts), true)
        try record.write(to: set)
        let name = "\(set)/\(Files.name(of: place))"
        let isLinked = try isDrained && freshDigest == nil && Files.hardLinkIfPossible(place, at: name)
        if !isLinked {
            for suffix in Self.suffixes + [""] where try Files.facts(place + suffix) != nil {
                try Files.rename(place + suffix, to: name + suffix)
            }
        }
        for changed in [set, Files.directory(of: set), Files.directory(of: place)] { try Files.syncDirectory(changed) }
        return isLinked ? new : nil
    }

    private func freeDirectory() throws -> String {
        let above = Files.directory(of: directory)
        let stem = Files.name(of: directory).dropLast(record.database.count)
        var number = 2
        while try Files.facts("\(above)/\(stem)\(number)-\(record.database)") != nil { number += 1 }
        return "\(above)/\(stem)\(number)-\(record.database)"
    }

    /// Whether the fresh file is in place as it was put there, and no process has opened it.
    private func isUntouched() throws -> Bool {
        guard let now = try Files.facts(place), try Sidecars.of(place).isEmpty else { return false }
        if let put {
            guard now.inode == put.inode, now.modified == put.modified else { return false }
        } else {
            guard let recordedFresh, MadeFile.mark(now) == recordedFresh else { return false }
        }
        // Without a lease this is unknown.
        return (try? WriteLease.take(place)).flatMap(\.self) != nil
    }

    /// What could not go back stays, with its record.
    private func removeIfEmpty() throws {
        for suffix in [""] + Self.suffixes {
            if try isSameContent(kept(suffix), place + suffix) { try Files.remove(kept(suffix)) }
        }
        let record = QuarantineRecord.fileName
        let ours = [record, Files.name(of: Files.staged(record)), Self.salvagedName, Self.reportName]
        if try Files.list(directory).allSatisfy(ours.contains) { try Files.removeTree(directory) }
    }

    private func kept(_ suffix: String) -> String { "\(directory)/\(Files.name(of: place))\(suffix)" }

    private func make(_ directory: String) throws {
        let above = Files.directory(of: directory)
        try Files.ensureDirectory(Files.directory(of: above))
        try Files.ensureDirectory(above)
        try Files.ensureDirectory(directory, mode: 0o700)
    }
}

internal import MoultBasics
internal import MoultFiles
internal import MoultSQLite
internal import MoultStore
internal import MoultTrust
internal import StepKit

/// Sets a writable database aside and puts the new one in its place.
///
/// A database that SQLite can open is drained first, so that a single file is replaced by a single exchange. A damaged one is
/// set aside with all its sidecars: first each file of the set gets a name in quarantine, then the sidecars' original names are
/// removed, and the last step exchanges the main file. If the main file came first, a process opening the path in between would
/// make SQLite remove a `-wal` full of rows, because that `-wal` does not belong to the new file. If a link is to take the
/// file's place, no exchange is needed: the link replaces the main file's name.
package final class SetAside: WritableEffect {
    let effect: Effect
    let place: String
    /// The directory of the set.
    let directory: String
    /// The path of the new file while it is staged.
    let newFile: String
    var record: QuarantineRecord
    /// The inode of the file in place at the time of the decision; nil before.
    private let recorded: UInt64?
    /// The digest that identifies the staged file in a copied store, where inodes prove nothing; otherwise nil.
    let newDigest: String?
    /// The mark (`MadeFile`) of the new file at the time of the decision; nil before.
    let recordedMark: UInt64?
    /// The mark of the old file's content at the time of the decision; nil before, and for a file without sidecars.
    private let recordedContent: UInt64?
    /// The staging directory with the salvaged rows and their report.
    let salvaged: String
    private var readable: Bool?
    /// Whether SQLite can read the file, even if the content does not belong to the installed database.
    private var isDatabase = false
    /// The file, if it could be drained.
    private let drained: DrainedFile
    /// The lease that keeps other processes from opening a file that could not be drained.
    var lease: WriteLease?
    var held: WriteLease? { drained.lease ?? lease }

    /// Returns whether the content belongs to the installed database: SQLite can read even the journal or `-wal` of another
    /// database without an error.
    private let fits: () throws -> Bool

    /// The metadata of the new file when it was put in place.
    var placed: FileFacts?

    init(
        _ effect: Effect, place: String, directory: String, newFile: String, record: QuarantineRecord, salvaged: String,
        recorded: UInt64?, recordedMark: UInt64?, recordedContent: UInt64?, newDigest: String? = nil,
        fits: @escaping () throws -> Bool = { true }
    ) {
        self.fits = fits
        (self.effect, self.place, self.directory, self.newFile) = (effect, place, directory, newFile)
        (self.record, self.salvaged, self.recorded) = (record, salvaged, recorded)
        (self.recordedMark, self.recordedContent, self.newDigest) = (recordedMark, recordedContent, newDigest)
        drained = DrainedFile(place)
    }

    private static let maxAttempts = 5

    static func key(_ path: String) -> String { "original/\(path)" }
    static func contentKey(_ path: String) -> String { "content/\(path)" }

    /// The inode by which recovery recognizes the file that is still to be set aside (0 for no file), and the mark of its
    /// content if it has sidecars.
    var facts: [String: UInt64] {
        get throws {
            guard case .quarantine(let path, _, _) = effect.change else { return [:] }
            var facts = [
                Self.key(path): try recorded ?? (isOriginalInPlace() ? current() : Files.facts(kept(""))?.inode ?? 0)
            ]
            let content = try recordedContent ?? (Sidecars.of(place).isEmpty ? nil : contentMark())
            facts[Self.contentKey(path)] = content
            return facts
        }
    }

    /// Returns the start of the digest of the file in place; nil if the file cannot be read. A file on a failing disk must still
    /// be set aside, so errors do not matter here.
    private func contentMark() throws -> UInt64? {
        // A power failure must not change the content that is recorded.
        func digest(_ file: borrowing Descriptor) throws -> Digest {
            try file.sync()
            return try SHA256.digest(of: file)
        }
        guard try Files.facts(place)?.kind == .file else { return nil }
        // A file that cannot be read has no digest, and is then not recognized by its content.
        let found: Digest?
        if let held {
            found = try? held.reading { try digest($0) }
        } else {
            guard try !OpenFiles.isOpenHere(place) else { return nil }
            found = try? digest(Descriptor(place, .read))  // nil as above
        }
        return found.flatMap { UInt64($0.hex.prefix(16), radix: 16) }
    }

    /// Returns whether the old file was changed after the decision. A crash may come after the removal of its sidecars, and
    /// then a program can change the file without them. SQLite would still apply them to the changed file, so the two must not
    /// come together again.
    func hasChanged() throws -> Bool {
        if let wasChanged { return wasChanged }
        guard let recordedContent, try isOriginalInPlace() else { return false }
        return try contentMark() != recordedContent
    }

    /// The result of `hasChanged`, determined before the file is drained, which also changes it.
    private var wasChanged: Bool?

    func current() throws -> UInt64 { try Files.facts(place)?.inode ?? 0 }
    var original: UInt64 { get throws { try recorded ?? decided ?? current() } }
    private var decided: UInt64?

    /// The result of `isOriginalInPlace`, determined before the file is leased: computing the file's digest opens the file,
    /// which would break the lease.
    var wasInPlace: Bool?

    /// Returns whether the file to be set aside is still at its path.
    func isOriginalInPlace() throws -> Bool {
        if let wasInPlace, held != nil { return wasInPlace }
        guard let newDigest, recorded != 0 else { return try current() == original }
        let isKept = try Files.facts(kept("")) != nil
        // If the new file is still at its staged path, the two files were not exchanged; the old one may have been moved, though.
        if try Files.facts(newFile) != nil {
            if isKept, try Files.facts(place) == nil { return false }
            return try Transaction.isPublished(newFile, newDigest)
        }
        guard isKept else { return true }
        return try isSameContent(place, kept(""))
    }

    /// Returns whether the original file is at the staged file's path.
    private func isOriginalStaged() throws -> Bool {
        guard let left = try Files.facts(newFile) else { return false }
        guard let newDigest, recorded != 0 else { return try left.inode == original }
        return try !Transaction.isPublished(newFile, newDigest)
    }

    func isSameContent(_ one: String, _ other: String) throws -> Bool {
        guard let a = try Files.facts(one), let b = try Files.facts(other), a.kind == b.kind else { return false }
        if a.inode == b.inode, a.device == b.device { return true }
        // Copying the store may have split one file into two.
        return try newDigest != nil && Files.haveSameBytes(one, other, leased: held)
    }

    // MARK: hold

    /// Holds the file. No process may have the database open when the names change, because anything that it then writes would
    /// be set aside as well.
    func hold() throws {
        decided = try current()
        // After a crash, the file may already have been set aside.
        let isInPlace = try isOriginalInPlace()
        if recorded != nil || newDigest != nil, !isInPlace { return }
        wasInPlace = isInPlace
        wasChanged = try hasChanged()
        guard try Files.facts(place)?.kind == .file else { return }
        // Draining would change the file, and its sidecars may be in quarantine already.
        if recordedContent != nil, wasChanged == false { readable = false }
        let isReadable = try isReadable()
        if isDatabase {
            let rows = try Self.rows(place)
            // A damaged file may have rows that cannot be counted.
            record.rows = isReadable || rows?.isEmpty == false ? rows : nil
        }
        if isReadable {
            try setModeOfRestoredFile()
            if try Self.drain(drained) { return }
        }
        do { lease = try WriteLease.take(place) } catch {
            // If the file belongs to another user or is unreadable, the kernel grants no lease, but open files can still be
            // listed.
            if try OpenFiles.holders(of: [place]).isEmpty { return }
        }
        if lease == nil { throw inUse() }
    }

    /// Sets the staged file of a restore to WAL mode if the file in place is in WAL mode. This comes before the decision: an undo
    /// recognizes the new file by its metadata, so moult must not write to it once it is in place.
    private func setModeOfRestoredFile() throws {
        guard case .quarantine(_, _, .restored) = effect.change, try Connection.isWAL(ofFileAt: place) else { return }
        try JournalModeRestore(path: newFile, wasWAL: true).restore()
    }

    /// Returns whether draining keeps all content. Evaluated once, before the file is drained.
    func isReadable() throws -> Bool {
        if let readable { return readable }
        isDatabase = try Self.isReadable(place)
        let isReadable = try isDatabase && fits()
        readable = isReadable
        return isReadable
    }

    func inUse() -> MoultError { InUse.error(place, advice: Self.advice) }

    /// Throws if a process has tried to open the file since it was held: if a link takes the file's place, that process would
    /// go on writing to the file in quarantine.
    func stage() throws {
        if placed == nil, let held, try !held.isUnbroken() { throw inUse() }
    }

    func finish() throws { try release() }

    func release() throws {
        lease = nil
        drained.release()
    }

    // MARK: set aside

    func perform() throws {
        // In a copied store, a missing file may be in quarantine already.
        let isNothing = try newDigest == nil ? original == 0 : recorded == 0
        if isNothing, try Files.facts(place) == nil, try Sidecars.of(place).isEmpty { return }
        try make(directory)
        var record = record
        let owner = try Files.facts(place).flatMap { $0.kind == .file ? QuarantineRecord.Owner($0) : nil }
        // An attempt before a crash may have written a record.
        let earlier = try QuarantineRecord(in: directory)
        (record.owner, record.rows) = (owner ?? earlier?.owner, record.rows ?? earlier?.rows)
        try record.write(to: directory)
        let there = try Files.facts(place)
        if try isOriginalInPlace() {
            // Each step is synced before the next: the name in quarantine, then the removal of the sidecars, then the new file,
            // with which SQLite would read a sidecar that is still there.
            if let there, there.kind == .file {
                // Copying the store may have split the file from its name in quarantine. If both still have the same content, they
                // become one file again, so that the link that replaces the other name finds it kept.
                if let copy = try Files.facts(kept("")), !copy.isSameFile(there), try isSameContent(place, kept("")) {
                    try Files.remove(kept(""))
                }
                _ = try addHardLink(place, kept(""))
                if try hasChanged() { try separateStaleSidecars() }
            }
            let left = try SidecarSuffixes.all.compactMap { suffix in try name(suffix).map { (place + suffix, $0) } }
            try syncQuarantine()
            for (sidecar, name) in left { try setAside(sidecar, name) }
            if !left.isEmpty { try Files.syncDirectory(Files.directory(of: place)) }
            if there != nil {
                if try Files.facts(newFile) != nil {
                    try exchange()
                } else if try Files.facts(kept("")) == nil {
                    // The symlink that a later effect puts here would replace the file's only name.
                    try Files.rename(place, to: kept(""))
                }
            }
        }
        try keepExchangedFile()
        for name in try Files.list(salvaged) { try Files.rename("\(salvaged)/\(name)", to: "\(directory)/\(name)") }
        for changed in [directory, Files.directory(of: directory), Files.directory(of: place)] {
            try Files.syncDirectory(changed)
        }
    }

    private func exchange() throws {
        // The app must have the same access to the new file as to the old one. Attributes that cannot be set are left to the
        // operator.
        if try Files.facts(place)?.kind == .file, try Files.reasonAgainstCopyingOwner(of: place) == nil {
            try Files.copyAttributes(from: place, to: newFile)
        }
        placed = try Files.facts(newFile)
        for _ in 0..<Self.maxAttempts {
            try Files.exchange(newFile, place)
            guard let held, try !held.isUnbroken() else {
                wasInPlace = nil
                // In a copied store the old file is identified by its digest, and a lease would prevent reading it.
                if newDigest != nil { try release() }
                return
            }
            // A process is about to open the old file, and would use the new file's sidecars with it, so the exchange is
            // undone.
            try Files.exchange(newFile, place)
            // If the process only reads, all of the content is still in the drained file.
            guard drained.lease != nil, try drained.holdAgain() else { break }
        }
        placed = nil
        throw inUse()
    }

    /// Moves the old file, which is at the staged path after the exchange, to its name in quarantine, unless the file already
    /// has a hard link there. A directory or another user's file cannot have one.
    func keepExchangedFile() throws {
        guard try isOriginalStaged() else { return }
        if try Files.facts(kept("")) == nil {
            try Files.rename(newFile, to: kept(""))
        } else if try isSameContent(kept(""), newFile) {
            try Files.remove(newFile)
        } else {
            // In a copied store, the file in quarantine is a separate copy, and the file at the staged path may have been
            // written to.
            try Files.rename(newFile, to: freeName(""))
        }
    }

    /// Syncs the directory of the set and those above it, which may have been created for it.
    private func syncQuarantine() throws {
        var changed = directory
        for _ in 0..<4 {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    /// Gives a sidecar its name in quarantine and returns that name; nil if the sidecar does not exist.
    private func name(_ suffix: String) throws -> String? {
        let sidecar = place + suffix
        guard let facts = try Files.facts(sidecar) else { return nil }
        // A file of that name may exist from before a crash, after which a process opened the database again.
        let name = try isSameContent(kept(suffix), sidecar) ? kept(suffix) : freeName(suffix)
        if facts.kind == .file { _ = try addHardLink(sidecar, name) }
        return name
    }

    /// Renames the sidecars in quarantine that no longer belong to the main file there, but not a sidecar whose content is the
    /// same as that of the sidecar in place.
    private func separateStaleSidecars() throws {
        guard try isSameContent(place, kept("")) else { return }
        for suffix in SidecarSuffixes.all where try Files.facts(kept(suffix)) != nil {
            if try !isSameContent(kept(suffix), place + suffix) { try Files.rename(kept(suffix), to: freeName(suffix)) }
        }
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

    /// Removes a sidecar whose name in quarantine is synced. A sidecar that cannot be hard-linked is renamed instead.
    private func setAside(_ sidecar: String, _ name: String) throws {
        if try Files.facts(name) != nil { try Files.remove(sidecar) } else { try Files.rename(sidecar, to: name) }
    }

    /// Gives a file a second name; returns false if that is impossible, for example for another user's file.
    private func addHardLink(_ file: String, _ name: String) throws -> Bool {
        if try Files.facts(name) != nil { return true }
        return try Files.hardLinkIfPossible(file, at: name)
    }

    func kept(_ suffix: String) -> String { "\(directory)/\(QuarantineRecord.keptName(of: place))\(suffix)" }

    func make(_ directory: String) throws {
        let above = Files.directory(of: directory)
        try Files.ensureDirectory(Files.directory(of: above))
        try Files.ensureDirectory(above)
        try Files.ensureDirectory(directory, mode: 0o700)
    }
}

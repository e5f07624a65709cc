internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import StepKit

/// Moves a file that SQLite cannot open, or that a link replaces, into quarantine with its sidecars. All other content of apps
/// changes only by a transaction of SQLite.
/// A process that has the file open would go on writing to it in quarantine, so the kernel's lease must show that none has. A
/// process that opens the file waits for the lease, which is looked at again after each rename.
final class Aside: WritableEffect {
    /// The staged file that takes the place; nil if a link does.
    private let newFile: String?
    private let set: String
    private let record: QuarantineRecord
    private var lease: WriteLease?

    init(
        _ effect: Effect, at path: String, in transaction: Transaction, newFile: String?, set: String,
        _ record: QuarantineRecord
    ) {
        (self.newFile, self.set, self.record) = (newFile, set, record)
        super.init(effect, at: path, in: transaction)
    }

    private func kept(_ suffix: String) -> String { "\(set)/\(record.keptName)\(suffix)" }
    /// Whether an attempt before a crash has moved the main file, or put the staged file in its place.
    private var isDone: Bool { get throws { try Files.facts(kept("")) != nil || hasTakenPlace } }
    private var hasTakenPlace: Bool { get throws { try newFile.map { try Files.facts($0) == nil } ?? isLink() } }
    private func isLink() throws -> Bool { try Files.target(ofLink: place).map(StoreLayout.isSealed) ?? false }

    override func prepareLocked() throws {
        if try isDone { return }
        lease = try Self.lease(on: place)
        // Apps must have the same access to the new file as to the old one. What this user cannot set is left to the operator.
        if let newFile, lease != nil, try Files.reasonAgainstCopyingOwner(of: place) == nil {
            try Files.copyAttributes(from: place, to: newFile)
        }
    }

    override func perform() throws {
        if try hasTakenPlace || Files.facts(place) == nil && Sidecars.of(place).isEmpty { return }
        try Self.move(place, to: set, record, lease)
        // The rows that were salvaged, and the report about them.
        let salvaged = Staging.salvaged(in: transaction.directory)
        for name in try Files.list(salvaged) { try Files.rename("\(salvaged)/\(name)", to: "\(set)/\(name)") }
        try Files.syncDirectory(set)
    }

    /// Moves the files back. A file that is now in their place is kept in a set of its own.
    override func revert() throws {
        lease = nil
        guard try Files.facts(set) != nil else { return }
        let isMoved = try Files.facts(kept("")) != nil
        if isMoved, try Files.facts(place) != nil, try !isLink() {
            var undone = record
            (undone.reason, undone.why) = (.undone, "an undo after a crash put the earlier file back")
            try Self.move(place, to: undone.freeDirectory(set), undone, Self.lease(on: place))
        }
        let suffixes = try SidecarSuffixes.all.filter { try Files.facts(kept($0)) != nil }
        if try isMoved || Files.facts(place) == nil {
            // A process that opens the file waits until this ends.
            let lease = isMoved ? try Self.lease(on: kept("")) : nil
            try withExtendedLifetime(lease) { try putBack(suffixes, isMoved: isMoved) }
        }
        // Until the main file is moved, a sidecar in the set is a second name. If the app has removed its own name since, the file does
        // not belong to the main file any more, and stays in the set.
        for suffix in suffixes where try Self.isSame(kept(suffix), place + suffix) { try Files.remove(kept(suffix)) }
        for changed in [Files.directory(of: place), set] { try Files.syncDirectory(changed) }
        try Removable(emptied: set)?.remove()
    }

    /// Gives the sidecars their names beside the main file, and then moves that file back.
    private func putBack(_ suffixes: [String], isMoved: Bool) throws {
        let free = try suffixes.filter { try Files.facts(place + $0) == nil }
        for suffix in free { try Self.link(kept(suffix), place + suffix) }
        guard isMoved else { return }
        if try isLink() { try Files.remove(place) }
        if try Files.renameIfFree(kept(""), to: place) { return }
        for suffix in free { try Files.remove(place + suffix) }
        throw Self.inUse(place)
    }

    override func release() throws { lease = nil }
    override func finish() throws { try release() }

    // MARK: moving

    /// Takes the lease on a regular file; nil for anything else. Throws if a process has it open, or if the kernel cannot tell.
    static func lease(on place: String) throws -> WriteLease? {
        guard try Files.facts(place)?.kind == .file else { return nil }
        do {
            guard let lease = try WriteLease.take(place, patience: patience), try lease.isOfFile(at: place) else {
                throw inUse(place)
            }
            return lease
        } catch let error as MoultError where error.outcome != .busy && ![.inUse, .portableBuild].contains(error.code) {
            let isOwn = try Files.facts(place)?.owner == geteuid()
            throw MoultError(
                .inUse, .busy, what: "\(place) cannot be moved to quarantine",
                why: "this user cannot tell whether a process has it open: \(error.why ?? error.what)",
                now: "Nothing was changed. "
                    + (isOwn && Files.isDenied(error)
                        ? "Give yourself access to the file: \(run: ["chmod", "u+rw", place])"
                        : "Run the command as the owner of the file, or as root."),
                cause: error)
        }
    }

    private static let patience = Duration.seconds(2)

    /// Moves a file with its sidecars to a set, which may have files from an attempt before a crash. The sidecars first get a second
    /// name there, then the main file is moved, and then their own names go: at no time is the main file without its sidecars, and
    /// SQLite, which deletes the sidecars of a file that an app creates in between, does not delete the only name.
    static func move(_ place: String, to set: String, _ record: QuarantineRecord, _ lease: WriteLease?) throws {
        var record = record
        try QuarantineRecord.makeParents(of: set)
        try Files.ensureDirectory(set, mode: 0o700)
        record.owner = try Files.facts(place).map { QuarantineRecord.Owner($0) } ?? QuarantineRecord(in: set)?.owner
        try record.write(to: set)
        let kept = "\(set)/\(record.keptName)"
        let isMoved = try Files.facts(kept) != nil
        var sidecars: [(String, kept: String)] = []
        for suffix in SidecarSuffixes.all {
            // An app has replaced or removed the sidecar since an attempt before a crash, so that one must not be read with the file.
            if try !isMoved && Files.facts(kept + suffix) != nil && !isSame(place + suffix, kept + suffix) {
                try Files.rename(kept + suffix, to: Files.firstFree("\(kept)\(suffix).earlier"))
            }
            guard try Files.facts(place + suffix) != nil else { continue }
            let isKept = try isSame(place + suffix, kept + suffix)
            // After the main file was moved, other sidecars belong to the file of an app.
            if isMoved, !isKept { continue }
            if !isKept { try link(place + suffix, kept + suffix) }
            sidecars.append((place + suffix, kept + suffix))
        }
        try QuarantineRecord.sync(set, levels: 4)
        if !isMoved, try Files.facts(place) != nil {
            try Files.rename(place, to: kept)
            if try lease?.isUnbroken() == false {
                guard try Files.renameIfFree(kept, to: place) else { throw inUse(place) }
                for (_, name) in sidecars { try Files.remove(name) }
                try Removable(emptied: set)?.remove()
                throw inUse(place)
            }
            for changed in [set, Files.directory(of: place)] { try Files.syncDirectory(changed) }
        }
        for (sidecar, _) in sidecars { try Files.remove(sidecar) }
        try Files.syncDirectory(Files.directory(of: place))
    }

    /// Gives a file a second name, or makes a copy where the file system has no hard links.
    private static func link(_ file: String, _ name: String) throws {
        if try Files.hardLinkIfPossible(file, at: name) { return }
        try Files.copy(file, to: name, mode: 0o600)
        try Files.syncFile(name)
    }

    /// Returns whether two names lead to the same file, or to files with the same content, as in a copy of the store.
    private static func isSame(_ one: String, _ other: String) throws -> Bool {
        guard let a = try Files.facts(one), let b = try Files.facts(other), a.kind == .file, b.kind == .file else {
            return false
        }
        return try a.isSameFile(b) || Files.haveSameBytes(one, other)
    }

    /// Keeps a regular file before a link takes its place. Another program may have put it there since an update was interrupted.
    static func keep(_ path: String, _ transaction: Transaction) throws {
        let place = transaction.layout.file(path)
        guard let lease = try lease(on: place) else { return }
        let record = QuarantineRecord.leftBehind(at: place)
        let set = "\(transaction.layout.quarantine(of: path))/\(transaction.id)-\(record.database)"
        try move(place, to: record.freeDirectory(set), record, lease)
    }

    private static func inUse(_ place: String) -> MoultError {
        InUse.error(place, advice: "Stop that program, and try again: its writes until then would also be set aside.")
    }
}

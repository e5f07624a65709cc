internal import MoultBasics
internal import MoultFiles
internal import MoultLibc
internal import MoultSQLite
internal import MoultStore
internal import StepKit

/// Moves a file that SQLite cannot open, or that a link replaces, into quarantine with its sidecars. All other content of apps
/// changes only by a transaction of SQLite.
///
/// A process that has the file open would go on writing to it in quarantine, so the kernel's lease must show that none has. A
/// process that opens the file waits for the lease, which is looked at again after each rename.
final class Aside: WritableEffect {
    let effect: Effect
    let place: String
    /// The staged file that takes the place; nil if a link does.
    private let newFile: String?
    private let set: String
    private let record: QuarantineRecord
    /// The staging directory with the salvaged rows and their report.
    private let salvaged: String
    private var lease: WriteLease?

    init(
        _ effect: Effect, place: String, newFile: String?, set: String, record: QuarantineRecord, salvaged: String
    ) {
        (self.effect, self.place, self.newFile, self.set) = (effect, place, newFile, set)
        (self.record, self.salvaged) = (record, salvaged)
    }

    private func kept(_ suffix: String) -> String { "\(set)/\(record.keptName)\(suffix)" }

    /// Whether an attempt before a crash has moved the file: its main file moves last, and then the staged file takes its place.
    private var isDone: Bool {
        get throws {
            try Files.facts(kept("")) != nil || newFile.map { try Files.facts($0) == nil } ?? isLink()
        }
    }

    private func isLink() throws -> Bool { try Files.target(ofLink: place).map(StoreLayout.isSealed) ?? false }

    func hold() throws {
        if try isDone { return }
        lease = try Self.lease(on: place)
        // Apps must have the same access to the new file as to the old one. What this user cannot set is left to the operator.
        if let newFile, lease != nil, try Files.reasonAgainstCopyingOwner(of: place) == nil {
            try Files.copyAttributes(from: place, to: newFile)
        }
    }

    func perform() throws {
        if try isDone { return }
        if try Files.facts(place) == nil, try Sidecars.of(place).isEmpty { return }
        try Self.move(place, to: set, record, lease)
        for name in try Files.list(salvaged) { try Files.rename("\(salvaged)/\(name)", to: "\(set)/\(name)") }
        try Files.syncDirectory(set)
    }

    /// Moves the files back. A file that is now in their place is kept in a set of its own.
    func revert() throws {
        lease = nil
        let suffixes = try ([""] + SidecarSuffixes.all).filter { try Files.facts(kept($0)) != nil }
        if suffixes.isEmpty { return }
        if try Files.facts(place) != nil, try !isLink() {
            // Sidecars without their file do not belong to the one that was created.
            guard suffixes.contains("") else { return }
            var undone = record
            (undone.reason, undone.why) = (.undone, "an undo after a crash put the earlier file back")
            try Self.move(place, to: Self.free(set), undone, Self.lease(on: place))
        }
        // A process that opens the file waits until the sidecars are beside it.
        let lease = suffixes.contains("") ? try Self.lease(on: kept("")) : nil
        try withExtendedLifetime(lease) {
            for suffix in suffixes {
                if try isLink() { try Files.remove(place) }
                if try !Files.renameIfFree(kept(suffix), to: place + suffix) { throw Self.inUse(place) }
            }
        }
        for changed in [Files.directory(of: place), set] { try Files.syncDirectory(changed) }
        try Removable(emptied: set)?.remove()
    }

    func release() throws { lease = nil }
    func finish() throws { try release() }

    // MARK: moving

    /// Takes the lease on a file; nil if there is no regular file. Throws if a process has it open, or if the kernel cannot tell.
    static func lease(on place: String) throws -> WriteLease? {
        guard try Files.facts(place)?.kind == .file else { return nil }
        do {
            guard let lease = try WriteLease.take(place, patience: patience), try lease.isOfFile(at: place) else {
                throw inUse(place)
            }
            return lease
        } catch let error as MoultError where error.code != .inUse && error.outcome != .busy {
            let isOwn = try Files.facts(place)?.owner == geteuid()
            throw MoultError(
                .inUse, .busy, what: "\(place) cannot be moved to quarantine",
                why: "this user cannot tell whether a process has it open: \(error.why ?? error.what)",
                now: "Nothing was changed. "
                    + (isOwn && Files.isDenied(error)
                        ? "Give yourself access to the file: \(shellLine(["chmod", "u+rw", place]))"
                        : "Run the command as the owner of the file, or as root."),
                cause: error)
        }
    }

    /// How long to wait for programs that open the file briefly.
    private static let patience = Duration.seconds(2)

    /// Moves a file with its sidecars to a set, which may have files from an attempt before a crash. The main file comes last: a
    /// set that has it is complete.
    static func move(_ place: String, to set: String, _ record: QuarantineRecord, _ lease: WriteLease?) throws {
        var record = record
        try make(set)
        record.owner = try Files.facts(place).map { QuarantineRecord.Owner($0) } ?? QuarantineRecord(in: set)?.owner
        try record.write(to: set)
        try sync(set)
        var moved: [(from: String, to: String)] = []
        for suffix in SidecarSuffixes.all + [""] where try Files.facts(place + suffix) != nil {
            let kept = try Files.firstFree("\(set)/\(record.keptName)\(suffix)")
            try Files.rename(place + suffix, to: kept)
            moved.append((place + suffix, kept))
            guard try lease?.isUnbroken() == false else { continue }
            for (from, to) in moved.reversed() where try !Files.renameIfFree(to, to: from) { break }
            throw inUse(place)
        }
        for changed in [set, Files.directory(of: place)] { try Files.syncDirectory(changed) }
    }

    /// Keeps a regular file before a link takes its place. Another program may have put it there since an update was interrupted.
    static func keep(_ path: String, _ transaction: Transaction) throws {
        let place = transaction.layout.file(path)
        guard let lease = try lease(on: place) else { return }
        let name = QuarantineRecord.keptName(of: place)
        let set = "\(transaction.layout.quarantine(of: path))/\(transaction.id)-\(name)"
        try move(
            place, to: Files.facts(set) == nil ? set : free(set), QuarantineRecord.leftBehind(at: place), lease)
    }

    private static func make(_ set: String) throws {
        let above = Files.directory(of: set)
        try Files.ensureDirectory(Files.directory(of: above))
        try Files.ensureDirectory(above)
        try Files.ensureDirectory(set, mode: 0o700)
    }

    /// Syncs the set and the directories above it, which may have been created for it.
    private static func sync(_ set: String) throws {
        var changed = set
        for _ in 0..<4 {
            try Files.syncDirectory(changed)
            changed = Files.directory(of: changed)
        }
    }

    private static func free(_ set: String) throws -> String {
        var number = 2
        while try Files.facts("\(set).\(number)") != nil { number += 1 }
        return "\(set).\(number)"
    }

    private static func inUse(_ place: String) -> MoultError {
        InUse.error(place, advice: "Stop that program, and try again: its writes until then would also be set aside.")
    }
}

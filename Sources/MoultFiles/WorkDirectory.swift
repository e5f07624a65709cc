internal import MoultBasics
internal import MoultLibc

/// A directory next to the destination of a command's output, in which the command prepares this output. If the command is
/// killed, the next command completes or undoes its work and removes the directory.
///
/// The name of a work directory is predictable, and other users may be able to write to the parent directory: they can create a
/// directory or symlink of that name first, or replace it later. A command therefore uses only a directory that no other user
/// can change, and reaches everything in it and in the parent directory through descriptors that it has opened.
package final class WorkDirectory {
    package let path: String
    private let held: Held
    /// The name of a file in each work directory.
    fileprivate static let marker = ".moult-work"
    /// Whether to keep the directory, because a set of files was delivered only in part, and the next command must complete or
    /// undo that.
    private var isNeeded = false

    /// Removes the directories that killed commands left, and creates a new one. Its name starts with `name`, which is the same
    /// for all commands that write the same output.
    package init(in parent: String, named name: String) throws {
        try Self.removeLeftovers(of: name, in: parent)
        let above = try PinnedDirectory.output(parent)
        var number = 0
        while true {
            let path = "\(parent)/\(name).\(number)"
            if try Files.facts(path) == nil, let held = try Self.make(path, in: above) {
                (self.path, self.held) = (path, held)
                return
            }
            number += 1
        }
    }

    /// A work directory that this process has locked and pinned; the lock ends with the process.
    private struct Held {
        let path: String
        let lock: FileLock
        let above: PinnedDirectory
        let pinned: PinnedDirectory

        /// Returns nil if another command has locked the directory, or if other users can change it.
        init?(_ path: String, in above: PinnedDirectory, isNew: Bool = false) throws {
            guard let found = try Files.facts(path), found.kind == .directory,
                try found.isExclusive || isNew && !above.recordsOwners(),
                let lock = try FileLock.take(path, .exclusive, directory: true), found.isSameFile(try lock.facts()),
                try !isNew || lock.names().isEmpty
            else { return nil }
            (self.path, self.lock, self.above) = (path, lock, above)
            pinned = try PinnedDirectory(path, lockedBy: lock)
        }

        /// Whether a command has made this directory as a work directory. A user who can write to the parent directory can rename
        /// any directory there, but cannot create a file in a directory of this user. A command may have been killed before it
        /// created the marker, and after a power failure the record of a set may be there without the marker.
        func isMade() throws -> Bool {
            let names = try lock.names()
            return names.isEmpty
                || [WorkDirectory.marker, FileSet.recordName].contains { names.contains(Array($0.utf8)) }
        }

        /// Removes the directory; the marker comes last, so that a killed removal can be completed.
        func remove() throws {
            // The last call also removes files whose names are not valid UTF-8.
            for name in try lock.names().compactMap({ OutsideText.valid($0) })
            where name != WorkDirectory.marker && name != FileSet.recordName {
                try Files.removeTree("\(path)/\(name)")
            }
            try Files.removeTree(path, knownAs: lock.facts())
        }
    }

    /// Creates and locks the directory; returns nil if another command was faster, or mistook the new directory for a leftover.
    private static func make(_ path: String, in above: PinnedDirectory) throws -> Held? {
        do { try Files.makeDirectory(path, mode: 0o700) } catch {
            guard try Files.facts(path) != nil else { throw error }
            return nil
        }
        do {
            guard let held = try Held(path, in: above, isNew: true) else { return nil }
            try Files.writeNew([], to: "\(path)/\(marker)", mode: 0o600)
            return held
        } catch {
            // The first error is the one to report.
            try? Files.remove("\(path)/\(marker)")
            try? Files.removeEmpty(path)
            throw error
        }
    }

    /// Returns the names of directories left by killed commands.
    package static func leftovers(of name: String, in parent: String) throws -> [String] {
        try lockLeftovers(name, parent).map { Files.name(of: $0.path) }
    }

    /// Locks and returns the directories of killed commands. Skips those of running commands, which are locked, those that
    /// other users can change, and those that no longer exist.
    private static func lockLeftovers(_ name: String, _ parent: String) throws -> [Held] {
        let names = try Files.list(parent).filter {
            $0.hasPrefix("\(name).") && Int($0.dropFirst(name.count + 1)) != nil
        }
        if names.isEmpty { return [] }
        let above = try PinnedDirectory.output(parent)
        // Any error means that the directory cannot be cleaned up safely, so it stays.
        return names.compactMap { try? Held("\(parent)/\($0)", in: above) }.filter { (try? $0.isMade()) == true }
    }

    /// Completes or undoes the work of killed commands, and removes their directories.
    package static func removeLeftovers(of name: String, in parent: String) throws {
        for held in try lockLeftovers(name, parent) {
            try FileSet.recover(in: held.path)
            try held.remove()
        }
    }

    /// The directory for the finished files of a set, under their final names.
    package var ready: String {
        get throws {
            try Files.ensureDirectory(FileSet.ready(path), mode: 0o700)
            return FileSet.ready(path)
        }
    }

    /// Writes a file of a set, under its final name.
    package func add(_ name: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws {
        try Files.writeNew(bytes, to: "\(ready)/\(name)", mode: mode)
    }

    /// Moves the files of a set, which are complete and synced, into the parent directory.
    ///
    /// Throws with the outcome `stuck` if the head is in place and the rest failed, or if the old head is gone and could not be
    /// restored. After any other error, readers still find the previous files.
    package func deliver(_ set: FileSet) throws { try set.deliver(from: path, isPending: &isNeeded) }

    /// Removes the directory. By now the result is in place, or an error is reported, so a failure here changes nothing; the
    /// next command removes leftover files.
    package func remove() { if !isNeeded { try? held.remove() } }
}

extension FileFacts {
    /// Whether only this user can change the content of this directory.
    package var isExclusive: Bool { owner == geteuid() && mode & 0o022 == 0 }
}

extension PinnedDirectory {
    /// Returns whether the file system records the owner and mode of a file: the file systems of USB sticks do not, and some
    /// file servers record root's files under another user.
    fileprivate func recordsOwners() throws -> Bool {
        let name = ".moult-owner.\(getpid())"
        let file: Int32
        do { file = try Syscall.create(name, in: number, mode: 0o600) } catch {
            throw error.error("cannot create \(path)/\(name)", .name("\(path)/\(name)"))
        }
        let facts = try Descriptor(owning: file, "\(path)/\(name)").facts()
        do { try Syscall.unlink(Array(name.utf8), in: number) } catch {
            throw error.error("cannot remove \(path)/\(name)")
        }
        return facts.owner == geteuid() && facts.mode & 0o077 == 0
    }
}

/// Files that belong together and appear in a directory as a set. One of them, the head, lists the others: the set exists once
/// the head is renamed into place.
///
/// The files are prepared in a work directory inside that directory. If the command fails before the head is in place, it
/// undoes everything; if it fails later, only the remaining files need to be placed. The next command finds the record of a set
/// that a failed or killed command left in the work directory, and undoes or completes the set in the same way.
package struct FileSet {
    package enum Mode: String, Sendable {
        /// None of the names is in use.
        case added
        /// The head replaces an older head; the names of the files placed before it are free.
        case replacing
        /// The files placed before the head replace files that the old head lists, so the old head is removed first.
        case overwriting
    }

    package let mode: Mode
    /// Placed before the head, in this order.
    package var first: [String] = []
    package let head: String
    /// Placed after the head, in this order.
    package var last: [String] = []
    /// Older files, removed at the end.
    package var stale: [String] = []

    package init(_ mode: Mode, head: String) { (self.mode, self.head) = (mode, head) }

    static func ready(_ work: String) -> String { "\(work)/ready" }
    private static func old(_ work: String) -> String { "\(work)/old" }
    static let recordName = "set.json"
    private static func record(_ work: String) -> String { "\(work)/\(recordName)" }

    // MARK: delivering

    /// Moves the prepared files from the work directory into the directory above it. `isPending` becomes true if the next
    /// command must complete or undo the set.
    func deliver(from work: String, isPending: inout Bool) throws {
        let directory = Files.directory(of: work)
        // Their inodes identify these files in the directory, because a rename keeps the inode.
        var inodes: [String: UInt64] = [:]
        for name in first { inodes[name] = try Files.facts("\(Self.ready(work))/\(name)")?.inode }
        try Files.ensureDirectory(Self.old(work), mode: 0o700)
        try Files.writeNew(Array(json(inodes).line.utf8), to: Self.record(work))
        for path in [Self.ready(work), work, directory] { try Files.syncDirectory(path) }
        do {
            if mode == .overwriting { try setAside(work, directory) }
            for name in first { try place(name, work, directory, isNew: true) }
            try Files.syncDirectory(directory)
            try place(head, work, directory, isNew: mode != .replacing)
        } catch {
            do { try undo(work, directory, inodes) } catch let second {
                isPending = true
                // While the old head is in place, every file that it lists must be too, so the head is removed first and
                // restored last. A head that cannot be examined counts as missing.
                guard mode == .overwriting, (try? Files.facts("\(directory)/\(head)")) == nil else { throw error }
                throw MoultError(
                    .fileSet, .stuck, what: "\(directory)/\(head) and the files that belong to it are incomplete",
                    why: "\(Self.text(error)), and this could not be undone: \(Self.text(second))",
                    now: "Run the command again: it removes the remains and starts over.", cause: error)
            }
            throw error
        }
        do { try finish(work, directory) } catch {
            isPending = true
            throw MoultError(
                .fileSet, .stuck, what: "\(directory)/\(head) was written, but the command did not finish",
                why: Self.text(error), now: "Run the command again to write the rest.", cause: error)
        }
    }

    private static func text(_ error: any Error) -> String { (error as? MoultError)?.problem ?? "\(error)" }

    /// Moves the old files into the work directory, the head before the files that it lists.
    private func setAside(_ work: String, _ directory: String) throws {
        for name in [head] + first where try Files.facts("\(directory)/\(name)") != nil {
            try Files.rename("\(directory)/\(name)", to: "\(Self.old(work))/\(name)")
            // The removal of the head is synced before any other file moves, so that after a crash no head lists files that are
            // gone.
            if name == head { try Files.syncDirectory(directory) }
        }
        try Files.syncDirectory(Self.old(work))
    }

    private func place(_ name: String, _ work: String, _ directory: String, isNew: Bool) throws {
        let (source, target) = ("\(Self.ready(work))/\(name)", "\(directory)/\(name)")
        guard isNew else { return try Files.rename(source, to: target) }
        guard try Files.renameIfFree(source, to: target) else {
            throw MoultError(
                .fileSet, .refused, what: "cannot write \(target)", why: "another file exists there",
                now: Files.moveAway(target))
        }
    }

    /// Completes the set once the head is in place.
    private func finish(_ work: String, _ directory: String) throws {
        try Files.syncDirectory(directory)
        for name in last where try Files.facts("\(Self.ready(work))/\(name)") != nil {
            try place(name, work, directory, isNew: false)
        }
        for name in stale { try Files.remove("\(directory)/\(name)") }
        if !last.isEmpty || !stale.isEmpty { try Files.syncDirectory(directory) }
    }

    /// Restores the old files, the old head last, and removes new files that were already placed. Call this only while the new
    /// head is not in place.
    private func undo(_ work: String, _ directory: String, _ inodes: [String: UInt64]) throws {
        for name in first + [head] {
            let (target, old) = ("\(directory)/\(name)", "\(Self.old(work))/\(name)")
            if try Files.facts(old) != nil {
                try Files.rename(old, to: target)
            } else if try name != head && Files.facts("\(Self.ready(work))/\(name)") == nil,
                let inode = inodes[name], try Files.facts(target)?.inode == inode
            {
                try Files.remove(target)
            }
        }
        try Files.syncDirectory(directory)
    }

    // MARK: recovery

    /// Completes or undoes the set of a killed command; `work` is its work directory.
    static func recover(in work: String) throws {
        // The record was synced before anything changed: without a complete record nothing has changed.
        guard let bytes = try Files.read(record(work), limit: 1 << 20),
            let (set, inodes) = try? read(bytes, record(work))
        else { return }
        let directory = Files.directory(of: work)
        if try Files.facts("\(ready(work))/\(set.head)") == nil {
            try set.finish(work, directory)
        } else {
            try set.undo(work, directory, inodes)
        }
    }

    private func json(_ inodes: [String: UInt64]) -> JSON {
        .record([
            "mode": mode.rawValue, "head": head,
            "first": first.map { JSON.record(["name": $0, "inode": inodes[$0].map(String.init) ?? ""]) }, "last": last,
            "stale": stale,
        ])
    }

    private static func read(_ bytes: [UInt8], _ source: String) throws -> (FileSet, [String: UInt64]) {
        let fail: Fields.Failure = { MoultError(.fileSet, what: "\(source): \($0) \($1)", now: $2) }
        let fields = try Fields(JSON(parsing: bytes, source: source), failure: fail)
        /// Returns the name if it is a plain file name; throws if it leads to another directory.
        func plain(_ name: String) throws -> String {
            guard !name.isEmpty, !name.containsSlash, name != ".", name != ".." else {
                throw fail("a name", "must be plain", nil)
            }
            return name
        }
        guard let mode = Mode(rawValue: try fields.string("mode")) else { throw fields.fail("mode", "is not known") }
        var set = FileSet(mode, head: try plain(fields.string("head")))
        var inodes: [String: UInt64] = [:]
        for part in try fields.objects("first") {
            let name = try plain(part.string("name"))
            set.first.append(name)
            inodes[name] = UInt64(try part.string("inode"))
        }
        set.last = try (fields.optionalStrings("last") ?? []).map(plain)
        set.stale = try (fields.optionalStrings("stale") ?? []).map(plain)
        return (set, inodes)
    }
}

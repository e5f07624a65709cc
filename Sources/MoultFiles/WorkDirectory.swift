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
            for name in try lock.names().compactMap({ OutsideText.valid($0) }) where name != WorkDirectory.marker && name != FileSet.recordName {
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
    package func deliver(_ set: FileSet) throws {
        try set.deliver(from: path, isPending: &isNeeded)
    }

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
        let file = try wrapped("cannot create \(path)/\(name)", .name("\(path)/\(name)")) { () throws(Errno) in
            try Syscall.create(name, in: number, mode: 0o600)
        }
        let facts = try Descriptor(owning: file, "\(path)/\(name)").facts()
        try wrapped("cannot remove \(path)/\(name)") { () throws(Errno) in try Syscall.unlink(name, in: number) }
        return facts.owner == geteuid() && facts.mode & 0o077 == 0
    }
}

internal import MoultBasics

/// A directory next to a result, in which a command makes it. The next command completes or undoes the work of a killed
/// command, and removes its directory.
package final class WorkDirectory {
    package let path: String
    /// Held while a command works there; it ends with the process.
    private let lock: FileLock
    /// Whether the next command needs what is in it: a set of files is neither complete nor undone.
    private var isNeeded = false

    /// `name` begins the directory's name, and that of others that make the same.
    package init(in parent: String, named name: String) throws {
        try Self.removeLeftovers(of: name, in: parent)
        var number = 0
        while true {
            let path = "\(parent)/\(name).\(number)"
            if try Files.facts(path) == nil, let lock = try Self.make(path) {
                (self.path, self.lock) = (path, lock)
                return
            }
            number += 1
        }
    }

    /// Nil if another command was quicker, or took the new directory for a leftover.
    private static func make(_ path: String) throws -> FileLock? {
        do { try Files.makeDirectory(path, mode: 0o700) } catch {
            guard try Files.facts(path) != nil else { throw error }
            return nil
        }
        guard let lock = try FileLock.take(path, .exclusive, directory: true) else { return nil }
        let (held, there) = (try lock.facts(), try Files.facts(path))
        return there.map { ($0.inode, $0.device) == (held.inode, held.device) } == true ? lock : nil
    }

    /// The names of the directories that killed commands have left.
    package static func leftovers(of name: String, in parent: String) throws -> [String] {
        try locked(name, parent).map(\.entry)
    }

    /// A directory whose command is gone has no lock.
    private static func locked(_ name: String, _ parent: String) throws -> [(entry: String, lock: FileLock)] {
        try Files.list(parent).compactMap { entry in
            guard entry.hasPrefix("\(name)."), Int(entry.dropFirst(name.count + 1)) != nil else { return nil }
            // One of another user, or one that is gone by now, is left alone.
            return (try? FileLock.take("\(parent)/\(entry)", .exclusive, directory: true)).map { (entry, $0) }
        }
    }

    /// Completes or undoes what killed commands began, and removes their directories.
    package static func removeLeftovers(of name: String, in parent: String) throws {
        for (entry, lock) in try locked(name, parent) {
            try FileSet.recover(in: "\(parent)/\(entry)")
            try Files.removeTree("\(parent)/\(entry)")
            withExtendedLifetime(lock) {}
        }
    }

    /// The directory for the finished files of a set, under their final names.
    package var ready: String {
        get throws {
            try Files.ensureDirectory(FileSet.ready(path), mode: 0o700)
            return FileSet.ready(path)
        }
    }

    /// Adds a finished file to a set.
    package func add(_ name: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws {
        try Files.writeNew(bytes, to: "\(ready)/\(name)", mode: mode)
    }

    /// Moves the files of a set, which are finished and synced, into the directory above.
    ///
    /// Throws with the outcome `stuck` if the head is in its place and the rest could not be done, or if the old head is gone
    /// and could not be restored. After every other error readers find what they found before.
    package func deliver(_ set: FileSet) throws {
        try set.deliver(from: path, isPending: &isNeeded)
    }

    /// By now the result is in its place, or an error is reported, so a failure here changes nothing; the next command
    /// removes what is left.
    package func remove() { if !isNeeded { try? Files.removeTree(path) } }
}

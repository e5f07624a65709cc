internal import MoultBasics
internal import MoultLibc

extension Files {
    /// Returns the path at which a file's new content is written before it replaces the file. A file that already exists there
    /// is removed, so the name is one that no user would choose.
    package static func staged(_ path: String) -> String { "\(directory(of: path))/.\(name(of: path)).moult-new" }

    /// Replaces a file's content so that after a crash the file has either the old or the new content in full. Processes that
    /// replace the same file at the same time take turns. Without `durable`, a power failure may leave the file empty.
    package static func replace(
        _ path: String, with bytes: [UInt8], mode: UInt32 = 0o644, durable: Bool = true
    ) throws {
        let temporary = staged(path)
        let file = try createStaged(temporary)
        do {
            // Sets the mode independently of the umask.
            try file.setMode(mode)
            try file.write(bytes)
            if durable { try file.sync() }
            try rename(temporary, to: path)
        } catch {
            // The first error is the one to report; the next attempt removes leftover files.
            try? remove(temporary)
            throw error
        }
        try file.close()
        if durable { try syncDirectory(directory(of: path)) }
    }

    /// Removes the staged file that a killed process left behind, if any. Returns false if a process is writing the file.
    @discardableResult
    package static func removeStaged(of path: String) throws -> Bool { try removeUnlocked(staged(path)) }

    /// Creates the staged file, which stays locked until it is closed. An existing file without a lock was left behind by a
    /// killed process.
    private static func createStaged(_ path: String) throws -> Descriptor {
        // The wait is limited, because other users can lock a leftover file that they may read.
        var backoff = Backoff(.seconds(5))
        while true {
            if let file = try createLocked(path) { return file }
            if try !removeUnlocked(path), !backoff.pause() { try remove(path) }
        }
    }

    /// Creates and locks a file. Returns nil if the name exists, or if another process locked or removed the new file as a
    /// leftover before this process locked it.
    private static func createLocked(_ path: String) throws -> Descriptor? {
        do {
            let file = try Descriptor(path, .create)
            guard try lock(file.number, path), try file.facts().isSameFile(facts(path)) else { return nil }
            return file
        } catch let error as MoultError {
            if error.cause as? Errno == .exists { return nil }
            throw error
        }
    }

    private static func removeUnlocked(_ path: String) throws -> Bool {
        guard let found = try facts(path) else { return true }
        guard found.kind == .file else {
            do { try remove(path) } catch var error as MoultError {
                error.now = moveAway(path)
                throw error
            }
            return true
        }
        do {
            let file = Descriptor(owning: try openToLock(path), path)
            guard try lock(file.number, path) else { return false }
            // If the files differ, another process has replaced the leftover file in the meantime.
            if try file.facts().isSameFile(facts(path)) { try remove(path) }
            try file.close()
        } catch let error as Errno {
            // Permission to remove another user's file depends on the directory.
            if error == .noEntry { return true }
            guard error == .denied else { throw error.error("cannot open \(path)", .read(path)) }
            try remove(path)
        }
        return true
    }

    private static func openToLock(_ path: String) throws(Errno) -> Int32 {
        // NFS locks a file exclusively only if it is open for writing.
        do { return try Syscall.open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW) } catch {
            guard error == .denied else { throw error }
            return try Syscall.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
        }
    }

    /// Locks an open file; returns false if another process has it locked. Returns true without a lock if the file system does
    /// not support locks.
    private static func lock(_ file: Int32, _ path: String) throws -> Bool {
        do {
            try Syscall.flock(file, LOCK_EX | LOCK_NB)
            return true
        } catch {
            if error == .wouldBlock { return false }
            if [ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EBADF].map({ Errno($0) }).contains(error) { return true }
            throw error.error("cannot lock \(path)")
        }
    }
}

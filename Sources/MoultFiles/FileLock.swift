internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// A kernel lock on an open file or directory (`flock`), released at the latest when the process ends.
///
/// Any process that can read the file can lock it. If processes wait for the lock, the file must be readable only to users who
/// may make them wait. A class, because the object that uses the protected data must keep the lock alive.
package final class FileLock: Sendable {
    package enum Mode: Sendable { case shared, exclusive }

    private let descriptor: Descriptor
    /// The file that is removed with the lock.
    private let temporary: String?

    private init(_ descriptor: consuming Descriptor, removing temporary: String? = nil) {
        self.descriptor = descriptor
        self.temporary = temporary
    }

    // Closing alone is not enough: a child that another thread is starting has a copy of the descriptor until it executes its
    // program, and would keep the lock until then. A failure here changes nothing, because closing follows, and because the next
    // process can lock a file that is still there.
    deinit {
        if let temporary { try? Files.remove(temporary) }
        _ = moult_flock_call(descriptor.number, LOCK_UN)
    }

    /// Takes the lock without waiting; returns nil if another process holds it. A temporary file exists only as long as its
    /// exclusive lock.
    package static func take(_ path: String, _ mode: Mode, directory: Bool = false, isTemporary: Bool = false) throws
        -> FileLock?
    {
        let descriptor = try Descriptor(path, directory ? .directory : .lock, mode: 0o600)
        do {
            if !directory {
                let facts = FileFacts(try Syscall.fstat(descriptor.number))
                guard facts.kind == .file else {
                    throw MoultError(
                        .system, what: "cannot lock \(path)", why: "it is not a regular file", now: Files.moveAway(path)
                    )
                }
                // Before locking, because locking fails if a process with only read access already holds the lock.
                try restrictMode(descriptor, facts)
            }
            try Syscall.flock(descriptor.number, (mode == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB)
            guard isTemporary else { return FileLock(descriptor) }
            // The previous process may have removed the file after this one had opened it.
            guard try descriptor.facts().isSameFile(Files.facts(path)) else {
                return try take(path, mode, isTemporary: true)
            }
            return FileLock(descriptor, removing: path)
        } catch let error as Errno {
            if error == .wouldBlock { return nil }
            throw error.error("cannot lock \(path)")
        }
    }

    /// Removes the permissions of users who must not lock the file: any user who can read a file can lock it, but only users
    /// with write permission should. Older versions made the file readable by all users.
    private static func restrictMode(_ descriptor: borrowing Descriptor, _ facts: FileFacts) throws(Errno) {
        let wanted: UInt32 = facts.mode & 0o020 == 0 ? 0o600 : 0o660
        // Another user may have linked an existing file of this user to the path of a lock.
        if facts.owner == geteuid(), facts.links == 1, facts.mode & ~wanted & 0o777 != 0 {
            try Syscall.fchmod(descriptor.number, wanted)
        }
    }

    /// Returns device and inode of the locked file.
    package func facts() throws -> FileFacts { try descriptor.facts() }

    /// Opens another descriptor of the locked directory, for paths below it.
    func openAgain() throws(Errno) -> Int32 {
        try Syscall.open(".", in: descriptor.number, SystemFeatures.pathOnly | O_DIRECTORY)
    }

    /// Returns the names in the locked directory as bytes.
    func names() throws -> [[UInt8]] { try descriptor.names() }
}

/// A read lock on a whole file, owned by an open file description (`F_OFD_SETLK`), and released at the latest when the process
/// ends.
///
/// Only a process that may write to the file can take a conflicting lock.
package final class ReadLock: Sendable {
    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    // Unlocks before closing, for the same reason as `FileLock`.
    deinit { _ = moult_unlock_reading(descriptor.number) }

    package enum Attempt {
        case taken(ReadLock)
        case blocked
        /// The path has no regular file that this user may read, or its file system does not support such locks.
        case impossible
    }

    package static func take(_ path: String) throws -> Attempt {
        guard let descriptor = try open(path) else { return .impossible }
        do {
            try Syscall.lockForReading(descriptor.number)
            return .taken(ReadLock(descriptor))
        } catch {
            if error == .wouldBlock || error == .denied { return .blocked }
            if error.isOne(of: EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP) { return .impossible }
            throw error.error("cannot lock \(path)")
        }
    }

    /// Returns whether the file at a path has such a lock. Also returns false if this user may not read the file.
    package static func isHeld(_ path: String) throws -> Bool {
        guard let descriptor = try open(path) else { return false }
        do { return try Syscall.isLocked(descriptor.number) } catch {
            // On a file system that does not support such locks, no file has one.
            if error.isOne(of: EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP) { return false }
            throw error.error("cannot query the locks on \(path)")
        }
    }

    /// Opens the file at a path; returns nil unless it is a regular file that this user may read.
    private static func open(_ path: String) throws -> Descriptor? {
        do {
            guard let descriptor = try Descriptor.ifThere(path, .record), try descriptor.facts().kind == .file else {
                return nil
            }
            return descriptor
        } catch let error as MoultError {
            if Files.isDenied(error) || error.cause as? Errno == .loop { return nil }
            throw error
        }
    }

    /// Returns device and inode of the locked file.
    package func facts() throws -> FileFacts { try descriptor.facts() }
}

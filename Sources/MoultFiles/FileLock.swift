internal import CLinux
internal import Glibc
internal import MoultBasics

/// A lock of the kernel on an open file or directory (`flock`); it goes when the process does.
///
/// A class, because whoever uses what it protects must keep it alive.
package final class FileLock: Sendable {
    package enum Mode: Sendable { case shared, exclusive }

    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    // Not left to closing: a child that another thread is just starting has a copy of the descriptor until it runs its
    // program, and would keep the lock as long. There is nobody to tell if it fails, and closing follows.
    deinit { _ = moult_flock_call(descriptor.number, LOCK_UN) }

    /// Takes the lock if it is free, nil if somebody has it.
    package static func take(_ path: String, _ mode: Mode, directory: Bool = false) throws -> FileLock? {
        let descriptor = try Descriptor(path, directory ? .directory : .lock, mode: 0o600)
        do {
            try Syscall.flock(descriptor.number, (mode == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB)
            if !directory { try closeToReaders(descriptor) }
            return FileLock(descriptor)
        } catch {
            if error == .wouldBlock { return nil }
            throw error.error("cannot lock \(path)")
        }
    }

    /// Whoever can read a file can lock it: only those who may write to it shall. Older versions made it readable for all.
    private static func closeToReaders(_ descriptor: borrowing Descriptor) throws(Errno) {
        let facts = FileFacts(try Syscall.fstat(descriptor.number))
        let wanted: UInt32 = facts.mode & 0o020 == 0 ? 0o600 : 0o660
        if facts.owner == geteuid(), facts.mode & ~wanted & 0o777 != 0 { try Syscall.fchmod(descriptor.number, wanted) }
    }

    /// Device and inode of what is locked.
    package func facts() throws -> FileFacts { try descriptor.facts() }
}

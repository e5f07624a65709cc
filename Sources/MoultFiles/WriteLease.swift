internal import MoultBasics
internal import MoultLibc

/// A kernel lease on a file, granted only if no process has the file open. A process that opens the file afterwards has to
/// wait.
///
/// If a process waits, the kernel breaks the lease after some seconds (`/proc/sys/fs/lease-break-time`), so a lease is held
/// only briefly. Only the file's owner or a process with CAP_LEASE can take one. A class, because it is stored in collections.
package final class WriteLease {
    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    // Closing alone is not enough: a forked child has a copy of the descriptor, and would keep the lease until the kernel ends it.
    // If this fails, closing follows.
    deinit { try? Syscall.setLease(descriptor.number, Int32(F_UNLCK)) }

    /// Passes the leased file to the closure for reading, while no other process can have it open.
    package func reading<R>(_ body: (borrowing Descriptor) throws -> R) rethrows -> R { try body(descriptor) }

    /// Returns whether the leased file itself is at a path. In a sticky directory, its owner can exchange it for a link at any
    /// moment.
    package func isOfFile(at path: String) throws -> Bool { try descriptor.facts().isSameFile(Files.facts(path)) }

    /// Takes the lease; returns nil if a process, including this one, has the file open and does not close it in time.
    ///
    /// A program that starts another one briefly has its files open twice, because the child shares them until it executes the
    /// other program. A single attempt therefore proves little.
    package static func take(_ path: String, patience: Duration = .milliseconds(200)) throws -> WriteLease? {
        guard SystemFeatures.hasFileLeases else {
            throw SystemFeatures.unavailable(
                "cannot replace \(path)", because: "cannot tell whether another process has a file open")
        }
        var backoff = Backoff(patience, longest: 1)
        repeat { if let lease = try takeNow(path) { return lease } } while backoff.pause()
        return nil
    }

    private static func takeNow(_ path: String) throws -> WriteLease? {
        // Opening and closing the file would drop this process's own locks on it.
        if try OpenFiles.isOpenHere(path) { return nil }
        let descriptor = try Descriptor(path, .read)
        do { try Syscall.setLease(descriptor.number, Int32(F_WRLCK)) } catch {
            if error == .wouldBlock { return nil }
            throw error.error("cannot take a lease on \(path)")
        }
        return WriteLease(descriptor)
    }

    /// Returns whether the lease is unbroken: no process has tried to open the file since the lease was taken.
    package func isUnbroken() throws -> Bool {
        do { return try Syscall.getLease(descriptor.number) == Int32(F_WRLCK) } catch {
            throw error.error("cannot query the lease on \(descriptor.path)")
        }
    }
}

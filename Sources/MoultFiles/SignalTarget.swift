internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// Another process, to which signals can be sent.
///
/// Its ID may be given to another process as soon as this one has ended. So first create the value, then check that this is the
/// intended process, then send: if the process has ended in between, no other process gets the signal. Linux before 5.3 cannot
/// ensure that.
package final class SignalTarget {
    package let pid: Int32
    /// Refers to the process itself, not to its ID; -1 where the system has no such descriptors.
    private let descriptor: Int32

    private init(pid: Int32, descriptor: Int32) { (self.pid, self.descriptor) = (pid, descriptor) }

    // Nothing was written, so closing cannot lose data.
    deinit { if descriptor >= 0 { MoultLibc.close(descriptor) } }

    /// Returns the process with this ID; nil if it does not exist.
    package static func find(pid: Int32) throws -> SignalTarget? {
        let descriptor = moult_pidfd_open(pid)
        if descriptor >= 0 { return SignalTarget(pid: pid, descriptor: descriptor) }
        let code = Errno(moult_errno())
        if code == .noProcess { return nil }
        // Container runtimes that do not know a system call refuse it with EPERM.
        guard [.unknownCall, .notPermitted].contains(code) else { throw code.error("cannot find process \(pid)") }
        return SignalTarget(pid: pid, descriptor: -1)
    }

    /// Sends a signal. Returns false if the process has ended.
    package func send(_ signal: Int32) throws(Errno) -> Bool {
        let answer = descriptor >= 0 ? moult_pidfd_signal(descriptor, signal) : kill(pid, signal)
        if answer == 0 { return true }
        let code = Errno(moult_errno())
        if code == .noProcess { return false }
        throw code
    }
}

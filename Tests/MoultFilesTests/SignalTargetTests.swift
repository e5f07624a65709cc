import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite struct SignalTargetTests {
    @Test func `a signal reaches the process`() throws {
        let child = try Subprocess(.init(["sleep", "60"]))
        let target = try #require(try SignalTarget.find(pid: child.pid))
        #expect(try target.send(SIGTERM))
        #expect(try child.wait() == .signalled(SIGTERM))
    }

    /// Without permission to choose the next process ID, the ID of the ended process is not used again.
    @Test func `a signal never reaches a process that got the ID of an ended one`() throws {
        let child = try Subprocess(.init(["sleep", "60"]))
        let pid = child.pid
        let target = try #require(try SignalTarget.find(pid: pid))
        _ = try child.endGroup()
        var other = try Subprocess(.init(["sleep", "60"]))
        for _ in 0..<100 where other.pid != pid {
            guard setLastPID(pid - 1) else { break }
            other = try Subprocess(.init(["sleep", "60"]))
        }
        #expect(try !target.send(SIGKILL))
        #expect(kill(other.pid, 0) == 0)
        other.signal(SIGTERM)
        #expect(try other.wait() == .signalled(SIGTERM))
        #expect(try SignalTarget.find(pid: Int32.max) == nil)
    }

    /// A process sets its name itself. U+0600 joins the parenthesis after it.
    @Test func `a process cannot change its start time by its name`() throws {
        let script = """
            import ctypes, sys
            ctypes.CDLL(None).prctl(15, b'x) \\xd8\\x80', 0, 0, 0)
            print('ready', flush=True); sys.stdin.read()
            """
        let child = try Subprocess(.init(["python3", "-c", script]), input: .pipe)
        var said: [UInt8] = []
        while said.last != UInt8(ascii: "\n"), let block = try child.read(patience: 20, stop: {}) { said += block }
        #expect(said == Array("ready\n".utf8))
        let started = try #require(ProcessFacts(pid: child.pid).started)
        #expect(abs(started.seconds - Timestamp.now.seconds) < 60)
        child.closeInput()
        #expect(try child.wait() == .exited(0))
    }

    /// Sets the ID after which the kernel looks for a free one; returns whether that is permitted.
    private func setLastPID(_ pid: Int32) -> Bool {
        let file = MoultLibc.open("/proc/sys/kernel/ns_last_pid", O_WRONLY)
        guard file >= 0 else { return false }
        defer { close(file) }
        let text = "\(pid)"
        return write(file, text, text.utf8.count) == text.utf8.count
    }
}

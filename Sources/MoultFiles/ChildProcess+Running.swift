internal import CLinux
internal import Glibc
internal import MoultBasics

extension ChildProcess {
    /// A program that was started: what it says, and its end.
    struct Running {
        let pid: pid_t
        let name: String
        let isGroup: Bool
        let output: Int32
        let errors: Int32
        let limit: Int
        var said: [[UInt8]] = [[], []]

        /// How long a program has between the request to end and its end.
        private static let grace = Duration.seconds(2)

        init(pid: pid_t, name: String, isGroup: Bool, output: Int32, errors: Int32, limit: Int) {
            (self.pid, self.name, self.isGroup) = (pid, name, isGroup)
            (self.output, self.errors, self.limit) = (output, errors, limit)
        }

        /// Takes in what it says until it ends; false if the time is over first.
        ///
        /// Its own end counts and not that of its output: what it leaves in the background may keep that open.
        mutating func listen(until deadline: ContinuousClock.Instant?, stop: () throws -> Void = {}) throws -> Bool {
            let end = moult_pidfd_open(pid)
            guard end >= 0 else { throw Errno(moult_errno()).error("cannot wait for \(name)") }
            defer { Glibc.close(end) }
            var polls = [output, errors, end].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            while true {
                let isOver = polls[2].revents != 0
                let count = poll(&polls, nfds_t(polls.count), isOver ? 0 : Threads.milliseconds(until: deadline))
                if count < 0 {
                    guard moult_errno() == EINTR else { throw Errno(moult_errno()).error("cannot wait for \(name)") }
                    try stop()
                    continue
                }
                // What it had said before its end is in the pipes by now.
                if isOver, polls[0].revents == 0, polls[1].revents == 0 { return true }
                if count == 0, let deadline, ContinuousClock.now >= deadline { return false }
                for index in 0..<2 where polls[index].revents != 0 {
                    // A negative descriptor is passed over.
                    if try take(index, from: polls[index].fd) == 0 { polls[index].fd = -1 }
                }
            }
        }

        private mutating func take(_ index: Int, from descriptor: Int32) throws -> Int {
            let name = name
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = try buffer.withUnsafeMutableBytes { bytes in
                try wrapped("cannot read what \(name) says") { () throws(Errno) in
                    try Syscall.read(descriptor, bytes)
                }
            }
            said[index] += buffer[..<count]
            if said[index].count > limit {
                throw MoultError(.system, what: "stopped \(name)", why: "it wrote more than \(ByteCount(limit))")
            }
            return count
        }

        func wait() throws -> Ending { try ChildProcess.wait(pid, for: name) }

        /// Ends it with all that it has started: asked to at first, and then not asked any more.
        mutating func end() throws -> Ending {
            Glibc.kill(-pid, SIGTERM)
            _ = try listen(until: ContinuousClock.now + Self.grace)
            kill()
            return .timedOut
        }

        /// It may have ended already, and then there is nothing to kill; the error at hand is the one to tell.
        func kill() {
            Glibc.kill(isGroup ? -pid : pid, SIGKILL)
            _ = try? wait()
        }
    }

    static func wait(_ pid: pid_t, for name: String) throws -> Ending {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            if moult_errno() != EINTR { throw Errno(moult_errno()).error("cannot wait for \(name)") }
        }
        return moult_exited(status) != 0
            ? .exited(moult_exit_status(status)) : .signalled(moult_term_signal(status))
    }
}

internal import CLinux
internal import Glibc
internal import MoultBasics

/// Another program whose output is read while it comes; killed at the end of its life if it is still there.
package final class StreamingChild {
    private let name: String
    private let pid: pid_t
    private let output: Pipe
    private let errors: Pipe
    private var isOver = false

    /// The most that is kept of what it says on standard error.
    private static let complaintLimit = 1 << 16

    /// Starts the program, found in PATH, with these bytes as its input; `environment` is added to this process's own.
    package init(_ arguments: [String], environment: [String: String] = [:], input: [UInt8]) throws {
        name = arguments.first ?? ""
        var output = try Pipe()
        var errors = try Pipe()
        pid = try ChildProcess.spawn(
            arguments, nil, environment, input, isGroup: false, output: output.input, errors: errors.input)
        output.closeInput()
        errors.closeInput()
        self.output = output
        self.errors = errors
    }

    deinit { if !isOver { kill() } }

    /// The next block of its standard output, nil at the end; asks `stop` several times in a second.
    package func read(patience seconds: Int, stop: () throws -> Void) throws -> [UInt8]? {
        var request = pollfd(fd: output.output, events: Int16(POLLIN), revents: 0)
        var quiet = 0
        while true {
            try stop()
            let ready = poll(&request, 1, 100)
            if ready < 0, moult_errno() != EINTR { throw Errno(moult_errno()).error("cannot wait for \(name)") }
            if ready > 0 { break }
            quiet += 1
            if quiet > seconds * 10 {
                throw MoultError(.system, what: "stopped \(name)", why: "it said nothing for \(seconds) seconds")
            }
        }
        let number = output.output
        let block = try [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            count = try wrapped("cannot read what \(name) says") { () throws(Errno) in try Syscall.read(number, bytes) }
        }
        return block.isEmpty ? nil : block
    }

    /// Waits for its end, and gives how it ended and what it said on standard error.
    package func finish() throws -> ChildProcess.Result {
        var said: [UInt8] = []
        let number = errors.output
        while said.count < Self.complaintLimit {
            let part = try [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                let bytes = UnsafeMutableRawBufferPointer(buffer)
                count = try wrapped("cannot read what \(name) says") { () throws(Errno) in
                    try Syscall.read(number, bytes)
                }
            }
            if part.isEmpty { break }
            said += part
        }
        let ending = try ChildProcess.wait(pid, for: name)
        isOver = true
        return ChildProcess.Result(pid: pid, ending: ending, output: [], errors: said)
    }

    package func kill() {
        guard !isOver else { return }
        isOver = true
        // It may have ended already, and then there is only its status to be taken away.
        _ = Glibc.kill(pid, SIGKILL)
        _ = try? ChildProcess.wait(pid, for: name)
    }
}

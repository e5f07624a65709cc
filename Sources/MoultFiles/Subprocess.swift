internal import CLinux
internal import MoultBasics
internal import MoultLibc

/// A started program: its input, its output, and how it ends. Every child process is one of these.
///
/// The program inherits only the standard descriptors and the given files. Deinitialization kills the program, with its group
/// if it has one. Only one thread may use an instance.
package final class Subprocess {
    /// The program to start, and how.
    package struct Command {
        /// The program and its arguments. A program name without a directory is searched for in PATH.
        package var arguments: [String]
        /// Added to the environment of this process.
        package var environment: [String: String]
        /// Replaces the environment of this process and `environment`.
        package var wholeEnvironment: [String: String]?
        package var directory: String?
        /// The program's restrictions, from its first instruction on.
        package var confinement: Confinement?
        /// Whether the program gets its own process group, which is killed with it.
        package var isGroup = false
        /// Whether the program is killed when the thread that started it ends, and so whenever this process ends.
        package var endsWithParent = false
        /// Whether a supervisor process kills the program's whole process group as soon as this process or the program has
        /// ended. Children that leave the group are not killed.
        package var isSupervised = false
        /// Whether the program sees all mounts except its own directory as read-only, if the system allows that.
        package var mountsReadOnly = false
        /// Open files that the program gets as descriptors 3, 4 and so on; at most three.
        package var files: [Int32] = []
        /// An open file to execute instead of the named program.
        package var executable: (number: Int32, isScript: Bool)?

        package init(_ arguments: [String], environment: [String: String] = [:], in directory: String? = nil) {
            (self.arguments, self.environment, self.directory) = (arguments, environment, directory)
        }

        var name: String { arguments.first.flatMap { $0.isEmpty ? nil : $0 } ?? "a program without a name" }
    }

    package enum Input {
        case nothing
        /// The whole input, in an in-memory file. A pipe would have to be filled while the program runs, and would break if the
        /// program did not read it.
        case bytes([UInt8])
        /// The input passed to `send`.
        case pipe
    }

    package enum OutputDestination { case pipe, inherited }

    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case signalled(Int32)
        /// The program was killed with all its children, because it exceeded its time limit.
        case timedOut
    }

    /// The process ID of the program, or of its supervisor.
    package let pid: Int32
    /// The ID of the supervised process group; 0 without a supervisor.
    private let group: Int32
    /// Whether the program's mounts are read-only, as requested.
    package let mountsAreReadOnly: Bool
    let name: String
    let isGroup: Bool
    /// This process's ends of the pipes; -1 for one that is closed or was never opened.
    var input: Int32
    var output: Int32
    var errors: Int32
    /// The socket to the supervisor; -1 without a supervisor.
    private let lifeline: Int32
    /// Becomes readable when the program has ended; -1 where the system has no such descriptors.
    let end: Int32
    /// Input passed to `send` that the pipe has not accepted yet.
    var pending: [UInt8] = []
    var ending: Ending?
    var complaint: [UInt8] = []

    package init(_ command: Command, input: Input = .nothing, output: OutputDestination = .pipe) throws {
        guard SystemFeatures.startsPrograms else {
            throw SystemFeatures.unavailable("cannot run \(command.name)", because: "cannot start other programs")
        }
        let started = try Self.start(command, input, output)
        (pid, group, mountsAreReadOnly) = (started.pid, started.group, started.isReadOnly)
        (name, isGroup) = (command.name, command.isGroup)
        (self.input, self.output, errors, lifeline) = (started.input, started.output, started.errors, started.lifeline)
        end = moult_pidfd_open(pid)
        // Container runtimes that do not know a system call refuse it with EPERM.
        if end < 0, ![ENOSYS, EPERM].contains(moult_errno()) {
            throw Errno(moult_errno()).error("cannot wait for \(name)")
        }
    }

    deinit {
        kill()
        // All writing is finished, so closing cannot lose data.
        for number in [input, output, errors, lifeline, end] where number >= 0 { MoultLibc.close(number) }
    }

    /// Queues bytes for the program's input, which `next` writes. Discards them if the input is closed.
    package func send(_ bytes: [UInt8]) { if input >= 0 { pending += bytes } }

    /// Closes the program's input.
    package func closeInput() {
        if input >= 0 { MoultLibc.close(input) }
        (input, pending) = (-1, [])
    }

    package func signal(_ number: Int32) {
        guard ending == nil else { return }
        if lifeline < 0 { return _ = MoultLibc.kill(isGroup ? -pid : pid, number) }
        // If the supervisor is gone, it has killed the whole group.
        withUnsafeBytes(of: UInt8(truncatingIfNeeded: number)) { _ = moult_write_quietly(lifeline, $0.baseAddress, 1) }
    }

    /// Kills the rest of the program's group, and returns how the program itself ended.
    ///
    /// The group is killed before the status is collected, so that the group's ID cannot have been reused yet.
    package func endGroup() throws -> Ending {
        signal(SIGKILL)
        return try wait()
    }

    /// Waits for the program to end.
    package func wait() throws -> Ending {
        if let ending { return ending }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            if moult_errno() != EINTR { throw Errno(moult_errno()).error("cannot wait for \(name)") }
        }
        if lifeline >= 0, MoultLibc.read(lifeline, &status, 4) != 4 {
            // If the supervisor was killed, so was the program, but not the program's children.
            if group > 0 { _ = MoultLibc.kill(-group, SIGKILL) }
            status = SIGKILL
        }
        let ending: Ending =
            moult_exited(status) != 0
            ? .exited(moult_exit_status(status)) : .signalled(moult_term_signal(status))
        self.ending = ending
        return ending
    }

    /// Kills the program, unless it has ended already, and discards its status.
    package func kill() {
        // The caller already reports the reason for the kill.
        if ending == nil { _ = try? endGroup() }
    }
}

/// Both ends of a pipe, closed on deinitialization.
struct Pipe: ~Copyable {
    let output: Int32
    private(set) var input: Int32

    init() throws { (output, input) = try Self.ends() }

    static func ends() throws -> (output: Int32, input: Int32) {
        var ends: [Int32] = [-1, -1]
        guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot create a pipe") }
        return (ends[0], ends[1])
    }

    mutating func closeInput() {
        // Nothing was written through this end here, so close has nothing to report.
        if input >= 0 { MoultLibc.close(input) }
        input = -1
    }

    deinit {
        if input >= 0 { MoultLibc.close(input) }
        MoultLibc.close(output)
    }
}

extension Subprocess {
    package enum Event {
        case output([UInt8])
        case errors([UInt8])
        /// The program has ended, and all of its earlier output was delivered.
        case ended
    }

    /// Waits for the next event; returns nil at the deadline, or if this process receives a signal.
    ///
    /// The last event is the end of the program itself, even if its background processes keep the output open.
    package func next(until deadline: ContinuousClock.Instant?) throws -> Event? {
        var isOver = false
        while true {
            // `poll` ignores negative descriptors.
            var polls = [output, errors, end].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            polls.append(pollfd(fd: pending.isEmpty ? -1 : input, events: Int16(POLLOUT), revents: 0))
            let count = poll(&polls, nfds_t(polls.count), isOver ? 0 : timeout(until: deadline))
            if count < 0 {
                guard moult_errno() == EINTR else { throw Errno(moult_errno()).error("cannot wait for \(name)") }
                return nil
            }
            if polls[3].revents != 0 { write() }
            if polls[0].revents != 0 {
                let bytes = try read(output)
                if !bytes.isEmpty { return .output(bytes) }
                close(&output)
            } else if polls[1].revents != 0 {
                let bytes = try read(errors)
                if !bytes.isEmpty { return .errors(bytes) }
                close(&errors)
            } else if isOver {
                return .ended
            } else if try polls[2].revents != 0 || (end < 0 && hasEnded()) {
                // All output that the program wrote before it ended is in the pipes by now.
                isOver = true
            } else if let deadline, ContinuousClock.now >= deadline {
                return nil
            }
        }
    }

    private func timeout(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard end < 0 else { return Threads.milliseconds(until: deadline) }
        return min(Threads.milliseconds(until: deadline ?? .now + .seconds(1)), Int32(MOULT_END_INTERVAL))
    }

    private func hasEnded() throws -> Bool {
        let answer = moult_has_ended(pid)
        if answer < 0 { throw Errno(moult_errno()).error("cannot wait for \(name)") }
        return answer == 1
    }

    private func read(_ number: Int32) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            do throws(Errno) { count = try Syscall.read(number, bytes) } catch {
                throw error.error("cannot read the output of \(name)")
            }
        }
    }

    private func write() {
        let count = pending.withUnsafeBytes { moult_write_quietly(input, $0.baseAddress, $0.count) }
        if count > 0 {
            pending.removeFirst(count)
        } else if moult_errno() != EAGAIN, moult_errno() != EINTR {
            // The program no longer reads its input; its output or exit status shows why.
            closeInput()
        }
    }

    private func close(_ number: inout Int32) {
        MoultLibc.close(number)
        number = -1
    }

    package struct Result: Sendable {
        /// The process ID of the program, or of its supervisor.
        package let pid: Int32
        package let ending: Ending
        package let output: [UInt8]
        package let errors: [UInt8]

        package var succeeded: Bool { ending == .exited(0) }
        /// Standard output without spaces and line feeds at either end.
        package var text: String { String(decoding: output, as: UTF8.self).trimmed }
        /// The program's standard error; if that is empty or the program exceeded its time limit, how the program ended.
        package var complaint: String {
            let said = String(decoding: errors, as: UTF8.self).trimmed
            if !said.isEmpty, ending != .timedOut { return said }
            return switch ending {
            case .exited(let status): "it ended with status \(status)"
            case .signalled(let signal): "it was killed by signal \(signal)"
            case .timedOut: "it did not end in time"
            }
        }
    }

    /// Whether a limit applies to the size of files written by programs that this process starts.
    package static var hasFileSizeLimit: Bool { moult_has_file_size_limit() != 0 }

    /// The time between SIGTERM and SIGKILL.
    private static let grace = Duration.seconds(2)

    /// Runs a command line of the user in a shell, unless another user can change the program that the line begins with.
    package static func shell(_ line: String, environment: [String: String]) throws -> Result {
        try PathCustody.check(program: line.split(whereSeparator: \.isWhitespace).map { String($0) })
        return try run(["sh", "-c", line], environment: environment, limit: 1 << 26, isSupervised: true)
    }

    /// Runs a program, found through PATH, until it ends. `environment` is added to the environment of this process;
    /// `wholeEnvironment` replaces both.
    ///
    /// An exit status other than 0 is not an error here. If the program writes more than `limit` bytes, it is killed and this
    /// function throws. With `within`, the program gets its own process group and is stopped after that time. This function
    /// does not wait for background processes that the program leaves behind. It calls `stop` when this process receives a
    /// signal; if `stop` throws, the program is killed. A program that another user can change is not run.
    package static func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], input: [UInt8] = [],
        wholeEnvironment: [String: String]? = nil, within time: Duration? = nil, limit: Int = 1 << 20,
        confinement: Confinement? = nil, isSupervised: Bool = false, stop: () throws -> Void = {}
    ) throws -> Result {
        var command = Command(arguments, environment: environment, in: directory)
        command.wholeEnvironment = wholeEnvironment
        (command.confinement, command.isGroup) = (confinement, time != nil || isSupervised)
        command.isSupervised = isSupervised
        try PathCustody.check(
            program: arguments, path: wholeEnvironment?["PATH"] ?? environment["PATH"], in: directory)
        let child = try Subprocess(command, input: input.isEmpty ? .nothing : .bytes(input))
        let deadline = time.map { ContinuousClock.now + $0 }
        var said: (output: [UInt8], errors: [UInt8]) = ([], [])
        func listen(until deadline: ContinuousClock.Instant?, stop: () throws -> Void) throws -> Bool {
            while true {
                switch try child.next(until: deadline) {
                case .output(let bytes): said.output += bytes
                case .errors(let bytes): said.errors += bytes
                case .ended: return true
                case nil:
                    try stop()
                    if let deadline, ContinuousClock.now >= deadline { return false }
                }
                if max(said.output.count, said.errors.count) > limit {
                    throw MoultError(
                        .system, what: "stopped \(child.name)", why: "it wrote more than \(ByteCount(limit))")
                }
            }
        }
        let ending: Ending
        if try listen(until: deadline, stop: stop) {
            ending = try child.wait()
        } else {
            // SIGTERM lets the program and all its children clean up first. `stop` is not called again.
            child.signal(SIGTERM)
            _ = try listen(until: .now + grace, stop: {})
            child.kill()
            ending = .timedOut
        }
        return Result(pid: child.pid, ending: ending, output: said.output, errors: said.errors)
    }

    /// Runs a program with this process's output and terminal, and waits until it ends.
    ///
    /// `stopSignal` is polled ten times a second. If it returns a signal, the program receives it, and is killed if it does not
    /// end within two seconds. The program is also killed when this process ends.
    package static func runInPlace(
        _ arguments: [String], environment: [String: String] = [:], stopSignal: () -> Int32? = { nil }
    ) throws -> Ending {
        var command = Command(arguments, environment: environment)
        command.endsWithParent = true
        let child = try Subprocess(command, output: .inherited)
        var asked: ContinuousClock.Instant?
        while true {
            if case .ended = try child.next(until: .now + .milliseconds(100)) { return try child.wait() }
            if let asked {
                if ContinuousClock.now > asked + grace { child.signal(SIGKILL) }
            } else if let signal = stopSignal() {
                asked = .now
                child.signal(signal)
            }
        }
    }

    // MARK: streaming output

    /// The maximum number of bytes of standard error to keep.
    private static let complaintLimit = 1 << 16

    /// Returns the next block of the program's standard output; nil at the end. Throws if nothing arrives for `patience`
    /// seconds. Calls `stop` several times a second.
    package func read(patience seconds: Int, stop: () throws -> Void) throws -> [UInt8]? {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            try stop()
            switch try next(until: .now + .milliseconds(100)) {
            case .output(let bytes): return bytes
            case .errors(let bytes): complaint = (complaint + bytes).suffix(Self.complaintLimit)
            case .ended: return nil
            case nil:
                if ContinuousClock.now > deadline {
                    throw MoultError(.system, what: "stopped \(name)", why: "it sent nothing for \(seconds) seconds")
                }
            }
        }
    }

    /// Waits for the program to end, and returns its exit status and standard error.
    package func finish() throws -> Result {
        var isOver = false
        while !isOver {
            switch try next(until: nil) {
            case .errors(let bytes): complaint = (complaint + bytes).suffix(Self.complaintLimit)
            case .ended: isOver = true
            case .output, nil: break
            }
        }
        return Result(pid: pid, ending: try wait(), output: [], errors: complaint)
    }
}

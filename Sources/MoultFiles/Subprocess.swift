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
    package func send(_ bytes: [UInt8]) {
        if input >= 0 { pending += bytes }
    }

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

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot create a pipe") }
        (output, input) = (ends[0], ends[1])
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

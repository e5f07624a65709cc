internal import CLinux
internal import Glibc
internal import MoultBasics

/// Another program, run to its end without a shell.
///
/// It gets the standard descriptors only, `/dev/null` for its input, and inherits no other descriptor.
package enum ChildProcess {
    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case signalled(Int32)
    }

    package struct Result: Sendable {
        package let ending: Ending
        package let output: [UInt8]
        package let errors: [UInt8]

        package var succeeded: Bool { ending == .exited(0) }
        /// The standard output without the line feed at its end.
        package var text: String { String(decoding: output, as: UTF8.self).trimmed }
        /// What it said on standard error; else how it ended.
        package var complaint: String {
            let said = String(decoding: errors, as: UTF8.self).trimmed
            if !said.isEmpty { return said }
            return switch ending {
            case .exited(let status): "it ended with status \(status)"
            case .signalled(let signal): "signal \(signal) ended it"
            }
        }
    }

    /// Runs the program, found in PATH, and waits for it. `environment` is added to this process's own.
    ///
    /// A status other than 0 is no error here. A program that writes more than `limit` bytes is killed, and that is one.
    package static func run(
        _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:], limit: Int = 1 << 20
    ) throws -> Result {
        let name = arguments.first ?? ""
        var output = try ChildPipe()
        var errors = try ChildPipe()
        let pid = try spawn(arguments, directory, environment, output: output.input, errors: errors.input)
        output.closeInput()
        errors.closeInput()
        do {
            let said = try drain(output.output, errors.output, limit: limit, of: name)
            return Result(ending: try wait(pid, for: name), output: said.0, errors: said.1)
        } catch {
            // It may have ended already; the error at hand is the one to tell.
            kill(pid, SIGKILL)
            _ = try? wait(pid, for: name)
            throw error
        }
    }

    /// Starts it; without `input` it has nothing to read.
    static func spawn(
        _ arguments: [String], _ directory: String?, _ environment: [String: String], input: Int32? = nil,
        output: Int32, errors: Int32
    ) throws -> pid_t {
        let what = "cannot run \(arguments.first ?? "a program without a name")"
        func check(_ code: Int32) throws {
            if code != 0 { throw Errno(code).error(what) }
        }
        var actions = posix_spawn_file_actions_t()
        try check(posix_spawn_file_actions_init(&actions))
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            try check(posix_spawn_file_actions_adddup2(&actions, input, 0))
        } else {
            try check(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0))
        }
        try check(posix_spawn_file_actions_adddup2(&actions, output, 1))
        try check(posix_spawn_file_actions_adddup2(&actions, errors, 2))
        try check(moult_spawn_addclosefrom(&actions, 3))
        if let directory { try check(moult_spawn_addchdir(&actions, directory)) }
        // A signal that this process ignores or blocks is no business of the child's.
        var attributes = posix_spawnattr_t()
        try check(posix_spawnattr_init(&attributes))
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        try check(posix_spawnattr_setsigmask(&attributes, &signals))
        sigaddset(&signals, SIGPIPE)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        try check(posix_spawnattr_setsigdefault(&attributes, &signals))
        try check(posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))

        let argv = arguments.map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        let settings = merged(environment).map { strdup($0) } + [nil]
        defer { for setting in settings { free(setting) } }
        var pid: pid_t = 0
        try check(posix_spawnp(&pid, arguments.first ?? "", &actions, &attributes, argv, settings))
        return pid
    }

    private static func merged(_ additions: [String: String]) -> [String] {
        let all = ownEnvironment.merging(additions) { $1 }
        return all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    }

    /// The environment of this process.
    package static var ownEnvironment: [String: String] {
        var settings: [String: String] = [:]
        var next = Glibc.environ
        while let setting = next.pointee {
            let text = String(cString: setting)
            if let equals = text.firstIndex(of: "=") {
                settings[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            next += 1
        }
        return settings
    }

    /// Reads both until their ends.
    private static func drain(
        _ output: Int32, _ errors: Int32, limit: Int, of name: String
    ) throws -> ([UInt8], [UInt8]) {
        var said: [[UInt8]] = [[], []]
        var polls = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while polls.contains(where: { $0.fd >= 0 }) {
            if poll(&polls, nfds_t(polls.count), -1) < 0 {
                if moult_errno() == EINTR { continue }
                throw Errno(moult_errno()).error("cannot wait for \(name)")
            }
            for index in polls.indices where polls[index].revents != 0 {
                let descriptor = polls[index].fd
                let count = try buffer.withUnsafeMutableBytes { bytes in
                    try wrapped("cannot read what \(name) says") { () throws(Errno) in
                        try Syscall.read(descriptor, bytes)
                    }
                }
                // A negative descriptor is passed over.
                if count == 0 { polls[index].fd = -1 }
                said[index] += buffer[..<count]
                if said[index].count > limit {
                    throw MoultError(.system, what: "stopped \(name)", why: "it wrote more than \(ByteCount(limit))")
                }
            }
        }
        return (said[0], said[1])
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

/// Two ends of a pipe, closed at the end of their life.
struct ChildPipe: ~Copyable {
    let output: Int32
    private(set) var input: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot make a pipe") }
        (output, input) = (ends[0], ends[1])
    }

    mutating func closeInput() {
        // Nothing was written through this end here, so close has nothing to report.
        if input >= 0 { Glibc.close(input) }
        input = -1
    }

    deinit {
        if input >= 0 { Glibc.close(input) }
        Glibc.close(output)
    }
}

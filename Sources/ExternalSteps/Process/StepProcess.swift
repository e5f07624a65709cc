internal import CLinux
internal import Glibc
internal import MoultBasics
internal import MoultFiles
internal import MoultSandbox

/// A process of a step that was started; killed with its group at the end of its life.
final class StepProcess {
    let pid: pid_t
    private(set) var input: Int32
    let output: Int32
    let errors: Int32
    let mountsAreReadOnly: Bool
    /// While this is open the step's group lives.
    private let lifeline: Int32
    private var status: Int32?

    init(
        _ executable: StepExecutable, name: String, rights: StepRights, scratch: String
    ) throws {
        let enforced = try rights.enforced(scratch: scratch)
        let ruleset = try enforced.ruleset()
        defer { Glibc.close(ruleset) }
        let filter = enforced.filter()
        let filterCount = filter.count
        // RLIMIT_CORE: no core of what may have read a user's data.
        let limits = [moult_limit(resource: 4, soft: 0, hard: 0)]
        var ends: [[Int32]] = []
        do { for _ in 0..<4 { ends.append(try Self.pipe()) } } catch {
            for end in ends.joined() { Glibc.close(end) }
            throw error
        }
        let words = [executable.isScript ? executable.path : name].map { (word: String) in strdup(word) } + [nil]
        let settings =
            [
                "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=\(scratch)", "TMPDIR=\(scratch)",
                "MOULT_STEP=\(name)", "MOULT_PROTOCOL=1",
            ].map { (setting: String) in strdup(setting) } + [nil]
        defer { for word in words + settings { free(word) } }
        // Some interpreters, as Perl, read from that very descriptor, where the last one has left it.
        guard !executable.isScript || lseek(executable.number, 0, SEEK_SET) == 0 else {
            throw Errno(moult_errno()).error("cannot run the step \(name)")
        }
        var readOnly: Int32 = 0
        var failure = moult_step_said()
        pid = filter.withUnsafeBytes { filter in
            limits.withUnsafeBufferPointer { limits in
                scratch.withCString { directory in
                    words.withUnsafeBufferPointer { words in
                        settings.withUnsafeBufferPointer { settings in
                            var start = moult_step(
                                program: executable.number, is_script: executable.isScript ? 1 : 0,
                                arguments: words.baseAddress, environment: settings.baseAddress, directory: directory,
                                mounts_read_only: rights.plans ? 1 : 0, input: ends[0][0], output: ends[1][1],
                                errors: ends[2][1], lifeline: ends[3][0],
                                confinement: moult_confinement(
                                    ruleset: ruleset,
                                    filter: filter.assumingMemoryBound(to: sock_filter.self).baseAddress,
                                    filter_count: Int32(filterCount), limits: limits.baseAddress,
                                    limit_count: Int32(limits.count)))
                            return moult_start_step(&start, &readOnly, &failure)
                        }
                    }
                }
            }
        }
        for end in [ends[0][0], ends[1][1], ends[2][1], ends[3][0]] { Glibc.close(end) }
        (input, output, errors, lifeline) = (ends[0][1], ends[1][0], ends[2][0], ends[3][1])
        mountsAreReadOnly = readOnly != 0
        guard pid > 0 else {
            status = 0
            throw MoultError(
                .stepTrust, what: "cannot run the step \(name): \(executable.path)", why: Self.reason(failure),
                now: failure.part == 7 && failure.code == ENOENT
                    ? "Install the interpreter that its first line names." : nil)
        }
        for end in [input, output, errors] where moult_fcntl_int(end, F_SETFL, O_NONBLOCK) != 0 {
            throw Errno(moult_errno()).error("cannot talk with the step \(name)")
        }
    }

    private static func pipe() throws -> [Int32] {
        var ends: [Int32] = [-1, -1]
        guard moult_pipe(&ends) == 0 else { throw Errno(moult_errno()).error("cannot make a pipe") }
        return ends
    }

    private static func reason(_ failure: moult_step_said) -> String {
        let parts = [
            1: "its limits", 2: "its privileges", 3: "Landlock", 4: "seccomp", 5: "its descriptors",
            6: "its directory", 7: "the program itself", 8: "its mounts", 9: "its process group",
        ]
        return "\(Errno(failure.code)) (\(parts[Int(failure.part)] ?? "its start"))"
    }

    func closeInput() {
        // What the step did not read, it did not need.
        if input >= 0 { Glibc.close(input) }
        input = -1
    }

    func signal(_ number: Int32) { if status == nil { Glibc.kill(-pid, number) } }

    /// Whether it has ended; does not wait, and leaves its status.
    var hasEnded: Bool {
        if status != nil { return true }
        var info = siginfo_t()
        return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo != 0
    }

    /// Ends what is left of the group and gives how the step itself ended.
    func collect() throws -> ChildProcess.Ending {
        // Before its status is taken away, so that the number of the group is nobody else's yet.
        Glibc.kill(-pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            if moult_errno() != EINTR { throw Errno(moult_errno()).error("cannot wait for a step") }
        }
        self.status = status
        return moult_exited(status) != 0
            ? .exited(moult_exit_status(status)) : .signalled(moult_term_signal(status))
    }

    deinit {
        if status == nil {
            // Whoever throws has an error to tell already.
            _ = try? collect()
        }
        closeInput()
        for end in [output, errors, lifeline] { Glibc.close(end) }
    }
}

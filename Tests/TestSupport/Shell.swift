import CLinux
import MoultBasics
import MoultFiles
import MoultLibc

/// Runs real programs.
package enum Shell {
    /// Options of bash with which a script ends at the first command that fails, and fails itself. Without them, its status is
    /// the status of its last command.
    package static let strict = ["-e", "-o", "pipefail"]

    package struct Ended: Sendable {
        package let status: Int32
        package let output: String
        package let errors: String
    }

    /// Runs a program by its name in PATH, in a directory, and returns its output. The status is 127 if the program
    /// does not exist. The directory is not `/tmp`, because Python imports modules from its working directory, and files of
    /// other processes are in `/tmp`.
    package static func run(
        _ arguments: [String], in directory: String = "/", environment: [String: String] = [:], input: String = ""
    ) throws -> Ended {
        let scratch = try Scratch()
        let (out, err, inp) = (scratch.path("out"), scratch.path("err"), scratch.path("in"))
        try Files.writeNew(Array(input.utf8), to: inp)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, inp, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT, 0o600)
        var all = [
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
            "HOME": scratch.path,
        ]
        all.merge(Sanitizer.environment) { $1 }
        all.merge(environment) { $1 }
        guard changeDirectory(&actions, directory) == 0 else { throw Errno(ENOMEM).error("cannot run \(arguments[0])") }
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = all.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in argv + envp { free(word) } }
        var attributes = Program.attributes(ownGroup: false)
        defer { posix_spawnattr_destroy(&attributes) }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, program(arguments[0], in: all["PATH"] ?? ""), &actions, &attributes, &argv, &envp)
        if code == ENOENT { return Ended(status: 127, output: "", errors: "\(arguments[0]): not found\n") }
        guard code == 0 else { throw Errno(code).error("cannot run \(arguments[0])") }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && moult_errno() == EINTR {}
        func text(_ path: String) throws -> String {
            String(decoding: try Files.read(path, limit: 1 << 28) ?? [], as: UTF8.self)
        }
        return Ended(
            status: moult_exited(status) != 0 ? moult_exit_status(status) : -moult_term_signal(status),
            output: try text(out), errors: try text(err))
    }

    /// The header declares this function only for C.
    private static let changeDirectory = unsafeBitCast(
        dlsym(nil, "posix_spawn_file_actions_addchdir_np"),
        to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, UnsafePointer<CChar>) -> Int32).self)

    private static func program(_ name: String, in path: String) -> String {
        guard !name.contains("/") else { return name }
        return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } ?? name
    }

    /// Runs a command that must succeed.
    @discardableResult
    package static func must(_ arguments: [String], in directory: String = "/", input: String = "") throws -> String {
        let ended = try run(arguments, in: directory, input: input)
        guard ended.status == 0 else {
            throw MoultError(
                .system, what: "\(arguments.joined(separator: " ")) ended with \(ended.status)", why: ended.errors)
        }
        return ended.output
    }
}

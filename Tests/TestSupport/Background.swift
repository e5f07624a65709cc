import CLinux
import MoultBasics
import MoultFiles
import MoultLibc

/// A program that runs in parallel with the test.
package final class Background {
    package let pid: Int32
    private let scratch: Scratch
    private var status: Int32?

    package init(_ arguments: [String]) throws {
        scratch = try Scratch()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, scratch.path("out"), O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, scratch.path("err"), O_WRONLY | O_CREAT, 0o600)
        // `env` searches PATH, as a shell does.
        var argv = (["/usr/bin/env"] + arguments).map { strdup($0) } + [nil]
        defer { for word in argv { free(word) } }
        let all = ["PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"].merging(Sanitizer.environment) { $1 }
        var envp = all.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in envp { free(word) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, "/usr/bin/env", &actions, nil, &argv, &envp)
        guard code == 0 else { throw Errno(code).error("cannot run \(arguments[0])") }
        self.pid = pid
    }

    deinit { stop() }

    /// Kills the program at once, as in a crash.
    package func stop() {
        if status == nil { kill(pid, SIGKILL) }
        _ = collect()
    }

    /// Waits until a condition holds; fails if the program ends before that.
    package func wait(until isSo: () throws -> Bool) throws {
        while try !isSo() {
            var now: Int32 = 0
            if waitpid(pid, &now, WNOHANG) == pid {
                status = now
                // The program may have made the condition true just before it ended.
                if try isSo() { return }
                throw MoultError(.system, what: "the program ended early", why: try text("err"))
            }
            usleep(1000)
        }
    }

    package func signal(_ number: Int32) { kill(pid, number) }

    /// Waits until the program ends, and returns its output; fails if the program failed.
    package func end() throws -> String {
        let status = collect()
        guard moult_exited(status) != 0, moult_exit_status(status) == 0 else {
            throw MoultError(.system, what: "the program ended with status \(status)", why: try text("err"))
        }
        return try text("out")
    }

    private func collect() -> Int32 {
        if let status { return status }
        var now: Int32 = 0
        while waitpid(pid, &now, 0) < 0 && moult_errno() == EINTR {}
        status = now
        return now
    }

    private func text(_ name: String) throws -> String {
        String(decoding: try Files.read(scratch.path(name), limit: 1 << 28) ?? [], as: UTF8.self)
    }
}

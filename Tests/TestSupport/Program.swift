package import CLinux
import MoultBasics
import MoultFiles
import MoultLibc

/// A process with which a test communicates line by line, and which ends at the latest when the test ends.
package final class Program {
    package let pid: pid_t
    private var input: Int32
    private let output: Int32
    private var pending: [UInt8] = []
    private var ended: Int32?

    package init(_ arguments: [String], environment: [String: String] = [:]) throws {
        var toChild: [Int32] = [0, 0]
        var fromChild: [Int32] = [0, 0]
        guard moult_pipe(&toChild) == 0, moult_pipe(&fromChild) == 0 else {
            throw Errno(moult_errno()).error("cannot create a pipe")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
        // The process has its own group, so that its child processes end with it.
        var attributes = Self.attributes(ownGroup: true)
        defer { posix_spawnattr_destroy(&attributes) }
        // `env` searches PATH, as a shell does.
        let argv = (["/usr/bin/env"] + arguments).map { strdup($0) } + [nil]
        let all = ["PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"].merging(Sanitizer.environment) { $1 }
            .merging(environment) { $1 }
        let envp = all.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in argv + envp { free(word) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, "/usr/bin/env", &actions, &attributes, argv, envp)
        close(toChild[0])
        close(fromChild[1])
        (self.pid, input, output) = (pid, toChild[1], fromChild[0])
        guard code == 0 else { throw Errno(code).error("cannot run \(arguments[0])") }
    }

    /// Returns attributes with which the process starts with default signals, even if this thread blocks signals or the
    /// tests were started with ignored signals.
    static func attributes(ownGroup: Bool) -> posix_spawnattr_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let group = ownGroup ? POSIX_SPAWN_SETPGROUP : 0
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group))
        return attributes
    }

    deinit {
        if ended == nil {
            kill(-pid, SIGKILL)
            wait()
        }
        closeInput()
        close(output)
    }

    /// Runs a Python program, given as text, with arguments.
    package static func python(_ text: String, _ arguments: String...) throws -> Program {
        try Program(["python3", "-u", "-c", text] + arguments)
    }

    /// Runs an app that opens a database only for a single change each, until its input ends. If the database is in WAL mode,
    /// its sidecars appear and disappear.
    package static func singleChanges(_ path: String, _ sql: String) throws -> Program {
        let app = try python(
            """
            import select, sqlite3, sys
            done = 0
            while not select.select([sys.stdin], [], [], 0)[0]:
                c = sqlite3.connect(sys.argv[1], timeout=5)
                c.execute(sys.argv[2]); c.commit(); c.close()
                done += 1
                if done == 1: print("ready")
            """, path, sql)
        guard app.line() == "ready" else { throw MoultError(.system, what: "the app did not change \(path)") }
        return app
    }

    /// Waits for the next line of output, and returns it; nil at the end.
    package func line() -> String? {
        while true {
            if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: pending[..<end], as: UTF8.self)
                pending.removeSubrange(...end)
                return line
            }
            var block = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &block, block.count)
            if count < 0, moult_errno() == EINTR { continue }
            guard count > 0 else { return nil }
            pending += block[..<count]
        }
    }

    package func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { MoultLibc.write(input, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    package func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    package func signal(_ number: Int32) { kill(pid, number) }

    /// Whether the process is running, for tests that wait for one of its actions.
    package var isRunning: Bool {
        var status: Int32 = 0
        guard ended == nil, waitpid(pid, &status, WNOHANG) == pid else { return ended == nil }
        ended = Self.code(status)
        return false
    }

    /// Waits until the process ends; returns its exit status, or 128 plus the signal.
    @discardableResult
    package func wait() -> Int32 {
        if let ended { return ended }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && moult_errno() == EINTR {}
        let code = Self.code(status)
        ended = code
        return code
    }

    private static func code(_ status: Int32) -> Int32 {
        moult_exited(status) != 0 ? moult_exit_status(status) : 128 + moult_term_signal(status)
    }
}

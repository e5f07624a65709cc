import CLinux
import Glibc

struct ProgramFailed: Error {
    var command: [String]
    var status: Int32
}

/// A process of its own, with pipes to its standard input and output: another user of the databases.
final class Child {
    let pid: pid_t
    private var input: Int32
    private let output: Int32
    private var status: Int32?

    init(_ command: [String]) throws {
        var toChild: [Int32] = [0, 0]
        var fromChild: [Int32] = [0, 0]
        guard pipe2(&toChild, O_CLOEXEC) == 0, pipe2(&fromChild, O_CLOEXEC) == 0 else {
            throw ProgramFailed(command: command, status: -1)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
        let arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, command[0], &actions, nil, arguments, Glibc.environ)
        close(toChild[0])
        close(fromChild[1])
        self.pid = pid
        input = toChild[1]
        output = fromChild[0]
        guard code == 0 else { throw ProgramFailed(command: command, status: code) }
    }

    deinit {
        if status == nil {
            kill(pid, SIGKILL)
            wait()
        }
        closeInput()
        close(output)
    }

    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// The next line of its output, without the line feed: how a test waits until the other process has come so far.
    func readLine() -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(output, &byte, 1) == 1, byte != UInt8(ascii: "\n") { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    func signal(_ number: Int32) { kill(pid, number) }

    /// Waits for its end: the exit status, or 128 plus the signal.
    @discardableResult
    func wait() -> Int32 {
        if let status { return status }
        var raw: Int32 = 0
        while waitpid(pid, &raw, 0) == -1 && errno == EINTR {}
        let ended = moult_exited(raw) != 0 ? moult_exit_status(raw) : 128 + moult_term_signal(raw)
        status = ended
        return ended
    }
}

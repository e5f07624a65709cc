import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Ordinary programs under the guard: allowed actions work, and resources are limited.
struct GuardedProgramTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    private func run(_ script: String, _ limits: Guard.Limits = .init(), within time: Duration? = nil) throws
        -> Subprocess.Result
    {
        try Guard(.program(), writing: [scratch.directory("work")], limits: limits).run(
            ["sh", "-c", script], in: scratch.directory("work"), environment: ["GREETING": "hello"],
            input: Array("given\n".utf8), within: time)
    }

    @Test
    func `a shell works in the sandbox`() throws {
        let result = try run("pwd; echo $GREETING; cat; ls / > /dev/null; echo x > file; cat < file | tr x y; exit 3")
        #expect(result.text == "\(scratch.path)/work\nhello\ngiven\ny")
        #expect(result.ending == .exited(3))
    }

    @Test
    func `a confined program inherits no descriptor`() throws {
        let open = try Descriptor("/etc/passwd", .read)
        let result = try run("ls -l /proc/self/fd | grep -c passwd")
        #expect(result.text == "0")
        #expect(open.number > 2)
    }

    @Test
    func `a confined Python has no network`() throws {
        let result = try Guard(.program()).run([
            "python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 9))",
        ])
        #expect(result.complaint.hasSuffix("PermissionError: [Errno 1] Operation not permitted"))
    }

    @Test
    func `the memory of a confined program is limited`() throws {
        let words = ["python3", "-c", "print(len(bytearray(600 << 20)))"]
        #expect(try Guard(.program()).run(words).text == "629145600")
        let result = try Guard(.program(), limits: .init(memory: 300 << 20)).run(words)
        #expect(result.complaint.hasSuffix("MemoryError"))
    }

    @Test
    func `the processor time of a confined program is limited`() throws {
        #expect(try run("while :; do :; done", .init(processor: 1)).ending == .signalled(SIGXCPU))
    }

    @Test
    func `the file size of a confined program is limited`() throws {
        let result = try run("head -c 1000000 /dev/zero > file", .init(fileSize: 65536))
        #expect(!result.succeeded)
        #expect(try Files.facts(scratch.path("work/file"))?.size == 65536)
    }

    @Test
    func `a confined program ends at the time limit`() throws {
        #expect(try run("sleep 1000", within: .milliseconds(200)).ending == .timedOut)
    }

    @Test
    func `a program that cannot start reports the reason`() throws {
        func error(_ words: [String], in directory: String? = nil, writing: [String] = []) throws -> String? {
            try #require(throws: MoultError.self) { try Guard(.program(), writing: writing).run(words, in: directory) }
                .description
        }
        #expect(try error(["/nothing"]) == "cannot run /nothing: No such file or directory")
        #expect(try error(["no-such-program"]) == "cannot run no-such-program: No such file or directory")
        #expect(
            try error(["true"], in: "/nothing")?.hasSuffix(": No such file or directory (directory)") == true)
        #expect(try error(["true"], writing: ["/nothing"]) == "cannot open /nothing: No such file or directory")
    }

    /// The test process has several threads, and confining only one of the threads would not be enough.
    @Test
    func `only a single-threaded process can confine itself`() throws {
        let error = try #require(throws: MoultError.self) { try Guard(.program()).confineThisProcess() }
        #expect(error.description == "cannot confine this process: it already has other threads")
    }
}

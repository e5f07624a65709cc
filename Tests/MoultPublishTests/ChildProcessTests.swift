import Glibc
import MoultBasics
import MoultFiles
import TestSupport
import Testing

@Suite struct ChildProcessTests {
    @Test func tellsWhatCameOut() throws {
        let result = try ChildProcess.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        #expect(result.ending == .exited(3))
        #expect(result.text == "out")
        #expect(result.complaint == "err")
        #expect(!result.succeeded)
    }

    @Test func tellsTheSignal() throws {
        let result = try ChildProcess.run(["sh", "-c", "kill -KILL $$"])
        #expect(result.ending == .signalled(SIGKILL))
        #expect(result.complaint == "signal 9 ended it")
    }

    @Test func passesArgumentsDirectoryAndEnvironment() throws {
        let scratch = try Scratch()
        let result = try ChildProcess.run(
            ["sh", "-c", "pwd -P; echo \"$1|$X|$HOME\"", "sh", "a b;$(c)"], in: scratch.path, environment: ["X": "y z"])
        #expect(result.text.split(separator: "\n").first.map { $0.hasSuffix(Files.name(of: scratch.path)) } == true)
        #expect(result.text.contains("a b;$(c)|y z|"))
    }

    /// Nothing but the three, however many this process has open.
    @Test func inheritsNoDescriptor() throws {
        let scratch = try Scratch()
        let open = Glibc.open(scratch.path, O_RDONLY | O_DIRECTORY)
        #expect(open >= 0)
        defer { close(open) }
        let result = try ChildProcess.run(["sh", "-c", "for f in /proc/self/fd/*; do readlink $f; done; cat"])
        #expect(!result.text.contains(scratch.path))
        #expect(result.succeeded)
    }

    /// Both pipes are read at once: neither can block the program.
    @Test func readsMuchFromBoth() throws {
        let script =
            "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; echo e >&2; i=$((i+1)); done"
        let result = try ChildProcess.run(["sh", "-c", script])
        #expect(result.output.count == 5000 * 41)
        #expect(result.errors.count == 5000 * 2)
    }

    @Test func stopsWhatWritesTooMuch() {
        let error = #expect(throws: MoultError.self) { try ChildProcess.run(["yes"], limit: 100_000) }
        #expect(error?.description == "stopped yes: it wrote more than 97.7 KiB")
    }

    @Test func saysThatAProgramIsMissing() {
        let error = #expect(throws: MoultError.self) { try ChildProcess.run(["no-such-program"]) }
        #expect(error?.description == "cannot run no-such-program: No such file or directory")
    }
}

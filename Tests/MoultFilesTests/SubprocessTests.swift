import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@Suite struct SubprocessTests {
    @Test func `a subprocess returns its output`() throws {
        let result = try Subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        #expect(result.ending == .exited(3))
        #expect(result.text == "out")
        #expect(result.complaint == "err")
        #expect(!result.succeeded)
    }

    @Test func `a subprocess returns the signal that ended it`() throws {
        let result = try Subprocess.run(["sh", "-c", "kill -KILL $$"])
        #expect(result.ending == .signalled(SIGKILL))
        #expect(result.complaint == "it was killed by signal 9")
    }

    @Test func `a subprocess starts with the given arguments, directory and environment`() throws {
        let scratch = try Scratch()
        let result = try Subprocess.run(
            ["sh", "-c", "pwd -P; echo \"$1|$X|$HOME\"", "sh", "a b;$(c)"], in: scratch.path, environment: ["X": "y z"])
        #expect(result.text.split(separator: "\n").first.map { $0.hasSuffix(Files.name(of: scratch.path)) } == true)
        #expect(result.text.contains("a b;$(c)|y z|"))
    }

    /// The program has only the three standard descriptors, however many descriptors this process has.
    @Test func `a subprocess inherits no descriptor`() throws {
        let scratch = try Scratch()
        let open = MoultLibc.open(scratch.path, O_RDONLY | O_DIRECTORY)
        #expect(open >= 0)
        defer { close(open) }
        let result = try Subprocess.run(["sh", "-c", "for f in /proc/self/fd/*; do readlink $f; done; cat"])
        #expect(!result.text.contains(scratch.path))
        #expect(result.succeeded)
    }

    /// Both pipes are read at the same time, so neither can block the program.
    @Test func `large output on both streams is read`() throws {
        let script =
            "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; echo e >&2; i=$((i+1)); done"
        let result = try Subprocess.run(["sh", "-c", script])
        #expect(result.output.count == 5000 * 41)
        #expect(result.errors.count == 5000 * 2)
    }

    @Test func `a program with too much output is stopped`() {
        let error = #expect(throws: MoultError.self) { try Subprocess.run(["yes"], limit: 100_000) }
        #expect(error?.description == "stopped yes: it wrote more than 97.7 KiB")
    }

    @Test func `a missing program is reported`() {
        let error = #expect(throws: MoultError.self) { try Subprocess.run(["no-such-program"]) }
        #expect(error?.description == "cannot run no-such-program: No such file or directory")
    }

    /// The kernel says of such a program that the program does not exist.
    @Test(arguments: ["elf", "script"]) func `a program without its loader is reported`(_ kind: String) throws {
        let scratch = try Scratch()
        let program = scratch.path("program")
        var bytes = try #require(try Files.read("/bin/sh", limit: 1 << 22))
        var loader = "/no/such/interpreter"
        if kind == "elf" {
            let name = Array("/lib64/ld-".utf8)
            let place = try #require(bytes.firstRange(of: name))
            bytes[place.lowerBound + 4] = 0x78  // /lib64 becomes /libx4.
            loader = String(decoding: bytes[place.lowerBound...].prefix { $0 != 0 }, as: UTF8.self)
        } else {
            bytes = Array("#! \(loader) -x\necho\n".utf8)
        }
        try Files.writeNew(bytes, to: program, mode: 0o755)
        let error = #expect(throws: MoultError.self) { try Subprocess.run([program]) }
        #expect(error?.why == "\(program) exists, but the program that loads it does not: \(loader)")
    }

    @Test func `a missing working directory is named as the cause`() {
        let error = #expect(throws: MoultError.self) { try Subprocess.run(["true"], in: "/nothing") }
        #expect(error?.description == "cannot run true: No such file or directory (directory)")
    }

    @Test func `a program that times out is ended with its child processes`() throws {
        let scratch = try Scratch()
        let script = "sleep 60 & echo $! >\(scratch.path("child")); wait"
        let result = try Subprocess.run(["sh", "-c", script], within: .milliseconds(300))
        #expect(result.ending == .timedOut)
        let child = try #require(try Files.read(scratch.path("child"), limit: 100))
        let number = try #require(Int32(String(decoding: child, as: UTF8.self).trimmed))
        // By then, init is the parent of the child process, and reaps it.
        while kill(number, 0) == 0 { usleep(1000) }
    }

    /// A background process keeps the pipes open, but the run ends anyway.
    @Test func `a run does not wait for background processes of the program`() throws {
        let begun = ContinuousClock.now
        let result = try Subprocess.run(["sh", "-c", "sleep 20 & echo $!"])
        #expect(ContinuousClock.now - begun < .seconds(15))
        let number = try #require(Int32(result.text))
        #expect(kill(number, SIGKILL) == 0)
    }

    @Test func `input is passed from memory or through a pipe`() throws {
        let large = [UInt8](repeating: 7, count: 1 << 20)
        let count = try Subprocess.run(["wc", "-c"], input: large)
        #expect(count.text == "1048576")
        let cat = try Subprocess(.init(["cat"]), input: .pipe)
        cat.send(large)
        var received = 0
        while received < large.count {
            if case .output(let bytes)? = try cat.next(until: nil) { received += bytes.count }
        }
        cat.closeInput()
        #expect(try cat.finish().ending == .exited(0))
    }

    /// The program does not read, and exits before everything is written.
    @Test func `unread input is not an error`() throws {
        let child = try Subprocess(.init(["true"]), input: .pipe)
        child.send([UInt8](repeating: 7, count: 1 << 20))
        #expect(try child.finish().ending == .exited(0))
    }

    @Test func `a subprocess is killed when its object is destroyed`() throws {
        var child: Subprocess? = try Subprocess(.init(["sleep", "60"]))
        let number = try #require(child?.pid)
        child = nil
        #expect(kill(number, 0) == -1)
    }

    @Test func `streamed output ends with the program`() throws {
        let child = try Subprocess(.init(["sh", "-c", "echo one; echo err >&2; sleep 0.1; echo two; exit 4"]))
        var said: [UInt8] = []
        while let block = try child.read(patience: 20, stop: {}) { said += block }
        #expect(String(decoding: said, as: UTF8.self) == "one\ntwo\n")
        let result = try child.finish()
        #expect(result.ending == .exited(4))
        #expect(result.complaint == "err")
    }

    @Test func `the wait for a silent program ends at the time limit`() throws {
        let child = try Subprocess(.init(["sleep", "60"]))
        let error = #expect(throws: MoultError.self) { try child.read(patience: 0, stop: {}) }
        #expect(error?.description == "stopped sleep: it sent nothing for 0 seconds")
    }
}

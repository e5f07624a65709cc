import MoultFiles
import TestSupport
import Testing

/// `moult apply --confirm` at a real terminal.
@Suite struct ConfirmTests {
    let scratch: Scratch
    let release: String

    init() throws {
        scratch = try Scratch()
        release = try ReleaseMaker(in: scratch.path("rel")).make(
            "1.0.0", sequence: 1, [.reference("food", "CREATE TABLE food(x)")])
        try scratch.must("moult init -q store --product org.example.test")
        try scratch.write(
            "at-terminal.py",
            """
            import os, pty, sys
            child, terminal = pty.fork()
            if child == 0:
                os.execvp("moult", ["moult"] + sys.argv[2:])
            seen = b""
            while b"[y/N]" not in seen:
                seen += os.read(terminal, 10000)
            os.write(terminal, sys.argv[1].encode() + b"\\n")
            try:
                while more := os.read(terminal, 10000):
                    seen += more
            except OSError:
                pass
            sys.stdout.write(seen.decode())
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """)
    }

    private func apply(answering answer: String) throws -> Shell.Ended {
        try scratch.run("TERM=dumb python3 at-terminal.py '\(answer)' apply --confirm --store store \(release)")
    }

    @Test func `only yes confirms, and the plan is shown first`() throws {
        let before = try Tree(scratch.path("store"), times: false)
        for answer in ["", "n", "no", "maybe", "yn"] {
            let ended = try apply(answering: answer)
            #expect(ended.status == 1 && ended.output.contains("was cancelled"), "\(ended)")
            let shown = try #require(ended.output.firstRange(of: "from the bundle, read-only"))
            let asked = try #require(ended.output.firstRange(of: "Do this now? [y/N]"))
            #expect(shown.upperBound < asked.lowerBound)
            #expect(try Tree(scratch.path("store"), times: false) == before)
        }
        #expect(try apply(answering: "Yes").status == 0)
        #expect(try scratch.must("moult status -s store").contains("org.example.test 1.0.0"))
        // Without changes, no confirmation is needed.
        try scratch.must("moult apply -s store \(release) < /dev/null")
    }

    @Test(arguments: ["< /dev/null", "--json", "-q", "<<< y"])
    func `without a terminal, no question is asked`(words: String) throws {
        let ended: Shell.Ended = try scratch.run("moult apply --confirm -s store \(release) \(words)")
        #expect(ended.status == 64 && (ended.errors + ended.output).contains("--confirm needs a terminal"), "\(ended)")
    }
}

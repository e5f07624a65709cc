import CLinux
import MoultBasics
import MoultLibc
import Testing

@testable import MoultCommand

/// Tests how the result of a verb determines the output and the exit status.
@Suite struct RunnerTests {
    private struct Found: Report {
        func write(to page: inout Page) { page.line("found") }
        var json: JSON { ["found": true] }
    }

    private func command(
        _ name: String, changesStore: Bool = false, run: @escaping @Sendable (Call) throws -> ExitCode
    ) -> Command {
        Command(
            name, .operators, name, changesStore: changesStore, examples: ["Do it:": "moult \(name)"], run: run)
    }

    private var commands: [Command] {
        let damaged = MoultError(.system, .undone, what: "cannot apply", why: "damaged", now: "\(moult: "verify")")
        return [
            command("look") {
                $0.output.print(Found())
                return .changes
            },
            command("change", changesStore: true) {
                $0.output.print(Found())
                return .done
            },
            command("fail") {
                $0.output.print(Found())
                throw damaged
            },
        ]
    }

    private func run(_ words: String..., out: Int32? = nil) throws -> (status: Int32, out: String, err: String) {
        let (results, diagnostics) = (try Sink(), try Sink())
        let environment = Environment([:])
        let console = Console(
            environment: environment, out: out ?? results.descriptor, err: diagnostics.descriptor)
        let runner = Runner(commands: commands, environment: environment, console: console)
        return (runner.run(words).rawValue, results.text, diagnostics.text)
    }

    @Test func `the exit status is the status of the verb`() throws {
        #expect(try run("look") == (2, "found\n", ""))
        #expect(try run("change", "--json") == (0, "{\"format\":1,\"found\":true}\n", ""))
    }

    @Test func `results before an error are printed`() throws {
        #expect(try run("fail") == (5, "found\n", "moult: error: cannot apply: damaged\n  Try: moult verify\n"))
        let json = try run("fail", "--json")
        #expect(json.status == 5)
        #expect(json.out.split(separator: "\n").count == 2)
        #expect(json.err == "")
        #expect(try run("fail", "-q").out == "")
    }

    /// Status 1 means that nothing was changed. If the store was changed, a lost result must therefore not cause status
    /// 1.
    @Test func `a result that cannot be written is an error unless the store was changed`() throws {
        let full = moult_openat(AT_FDCWD, "/dev/full", O_WRONLY, 0)
        try #require(full >= 0)
        defer { close(full) }
        let lost = "cannot write the results: No space left on device"
        #expect(try run("look", out: full) == (1, "", "moult: error: \(lost)\n"))
        #expect(
            try run("change", out: full) == (
                0, "", "moult: warning: \(lost); the exit status is still correct\n"
            ))
        #expect(try run("fail", out: full).status == 5)
    }
}

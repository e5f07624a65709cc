import Moult
import MoultBasics
import StepKit
import TestSupport
import Testing

@testable import MoultCommand

/// The built command, run as from a shell.
@Suite struct BuiltCommandTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test func `the command prints its version`() throws {
        #expect(try scratch.moult("moult --version") == (0, "moult \(moultVersion)\n", ""))
        #expect(
            try scratch.moult("moult --version --json") == (0, "{\"format\":1,\"version\":\"\(moultVersion)\"}\n", ""))
    }

    @Test func `help VERB and VERB --help print the same`() throws {
        for command in Command.all {
            let one = try scratch.moult("moult help \(command.name)")
            let other = try scratch.moult("moult \(command.name) --help")
            #expect(one == other)
            #expect(one.status == 0)
            #expect(one.err == "")
        }
    }

    @Test func `a reader that closes the pipe is not an error`() throws {
        let run = try scratch.moult("moult help --json | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}")
        #expect(run == (0, "0\n", ""))
    }

    @Test func `output to a pipe has no colour unless colour is forced`() throws {
        #expect(try !scratch.moult("TERM=xterm moult help").out.contains("\u{1B}"))
        #expect(try scratch.moult("CLICOLOR_FORCE=1 moult help").out.contains("\u{1B}[1mUsage:\u{1B}[0m"))
    }

    @Test func `manual pages are written`() throws {
        let run = try scratch.moult("moult completions man pages && ls pages/*")
        #expect(run.status == 0)
        for command in Command.all { #expect(run.out.contains("+ pages/man1/moult-\(command.name).1\n")) }
        for topic in Topic.all { #expect(run.out.contains("moult-\(topic.name).7\n")) }
        #expect(try scratch.moult("moult completions man").err.hasPrefix("moult: error: man needs the argument DIR\n"))
        #expect(
            try scratch.moult("moult completions fish pages").err.hasPrefix(
                "moult: error: only man takes a directory: unexpected argument \"pages\"\n"))
    }

    @Test(.tags(.thorough)) func `manual pages are valid roff`() throws {
        let run = try scratch.moult(
            "moult completions man p > list && groff -ww -man -T ascii p/*/* | cat > page && wc -l < page")
        #expect(run.status == 0)
        #expect(run.err == "")
        let page = try scratch.text("page")
        #expect(page.contains("--store") || page.contains("--json"))
    }

    @Test(.tags(.thorough)) func `manual pages pass a lint`() throws {
        // The pages contain no date, so that they change only with the version in them.
        let run = try scratch.moult(
            "moult completions man p > list; mandoc -T lint -W warning p/*/* | grep -v 'missing date'")
        #expect(run.out == "")
    }
}

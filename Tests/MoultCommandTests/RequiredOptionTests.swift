import TestSupport
import Testing

@testable import MoultCommand

/// Help marks exactly the options that the built command refuses to run without.
@Suite struct RequiredOptionTests {
    private let scratch: Scratch
    init() throws { scratch = try Scratch() }

    @Test func `these options are required`() {
        let required = Command.all.flatMap { command in
            command.ownOptions.filter { $0.requirement != nil }.map { "\(command.name) \($0.usage)" }
        }
        #expect(
            required.sorted() == [
                "build --output FILE", "cache --schema SCHEMA.sql", "delta --output FILE", "hold --reason TEXT",
                "init --product NAME", "salvage --output FILE", "sign --key FILE", "trust --key FILE",
            ])
    }

    /// Runs a verb with its required arguments and these options.
    private func run(_ command: Command, _ options: [Option]) throws -> (status: Int32, out: String, err: String) {
        let words = command.arguments.filter(\.isRequired).map { argument in
            if case .choice(let words) = argument.value.kind { words[0] } else { "x" }
        }
        let line = ["moult", command.name] + words + options.flatMap { ["--\($0.name)", "x"] }
        return try scratch.moult("\(line.joined(separator: " ")) < /dev/null")
    }

    @Test(arguments: Command.all.map(\.name))
    func `help marks the options that a verb refuses to run without`(_ name: String) throws {
        let command = try #require(Command.all.first { $0.name == name })
        let required = command.ownOptions.filter { $0.requirement != nil }
        let help = try scratch.mustMoult("moult \(name) --help").split { " \n".contains($0) }.joined(separator: " ")
        #expect(help.contains("Usage: \(command.usage) "))
        for option in command.ownOptions {
            let isShown = help.contains(" \(option.usage)\(option.repeats ? "..." : "") \(option.summary) ")
            #expect(isShown, "\(option.usage)")
            #expect(option.summary.hasSuffix(" (required)") == required.contains { $0.name == option.name })
        }
        for option in required {
            let why = try #require(option.requirement)
            #expect(command.usage.hasPrefix("moult \(name) [options] --") && command.usage.contains(" \(option.usage)"))
            #expect(
                try run(command, required.filter { $0.name != option.name }) == (
                    64, "", "moult: error: \(name) needs \(option.usage): \(why)\n  Try: moult \(name) --help\n"
                ))
        }
        // No other option is required.
        let complete = try run(command, required)
        #expect(!complete.err.contains("\(name) needs --"), "\(complete)")
    }

    @Test(.tags(.thorough)) func `pages and completions have the mark`() throws {
        let mark = "The reason, shown with the hold (required)"
        for shell in ["zsh", "fish"] {
            #expect(try scratch.mustMoult("moult completions \(shell)").contains(mark))
        }
        let page = try scratch.mustMoult("moult completions man pages > list; cat pages/man1/moult-hold.1")
        #expect(page.contains("moult hold [options] \\-\\-reason TEXT [VERSION...]\n"))
        #expect(page.contains("\(mark).\n"))
        let json = try scratch.mustMoult("moult help hold --json")
        #expect(json.contains(#""value":"TEXT","required":true"#), "\(json)")
    }
}

import Testing

@testable import MoultCommand

@Suite struct LineParserTests {
    private func parse(_ words: String...) throws -> ParsedLine {
        try LineParser.parse(words, commands: SampleCommands.commands)
    }

    @Test(arguments: [
        ["apply", "--out", "plan", "m.json"], ["apply", "m.json", "--out=plan"], ["apply", "-o", "plan", "m.json"],
    ])
    func `an option may stand anywhere`(_ words: [String]) throws {
        let line = try LineParser.parse(words, commands: SampleCommands.commands)
        #expect(line.command?.name == "apply")
        #expect(line.options == ["out": ["plan"]])
        #expect(line.arguments == ["MANIFEST": ["m.json"]])
    }

    @Test func `common options may stand before the verb`() throws {
        let line = try parse("--store", "s", "-q", "status")
        #expect(line.options == ["store": ["s"], "quiet": []])
    }

    @Test(arguments: [
        ["-qvs", "s", "status"], ["-qvss", "status"], ["status", "-vq", "-ss"], ["-s", "s", "-q", "status", "-v"],
    ])
    func `short options may be combined, and the last may have a value`(_ words: [String]) throws {
        let line = try LineParser.parse(words, commands: SampleCommands.commands)
        #expect(line.options == ["store": ["s"], "quiet": [], "verbose": []])
    }

    @Test func `version can be used as a verb`() throws {
        #expect(try parse("version").has(.version))
        #expect(try parse("look", "version").arguments == ["FILE": ["version"]])
    }

    @Test func `two dashes end the options, and a path that begins with a dash stays a path`() throws {
        let line = try parse("look", "-q", "--", "-v", "--", "--json")
        #expect(line.options == ["quiet": []])
        #expect(line.arguments == ["FILE": ["./-v", "./--", "./--json"]])
    }

    @Test func `a single dash is an argument`() throws {
        #expect(try parse("apply", "-", "-o", "-").options == ["out": ["-"]])
        #expect(try parse("look", "-").arguments == ["FILE": ["-"]])
    }

    @Test func `the value of an option may contain an equals sign or begin with a dash`() throws {
        #expect(try parse("apply", "m", "--out=a=b").options == ["out": ["a=b"]])
        #expect(try parse("apply", "m", "--out=-a").options == ["out": ["./-a"]])
    }

    @Test func `repeated options keep their order`() throws {
        #expect(try parse("apply", "m", "--only", "b", "--only=a").options == ["only": ["b", "a"]])
    }

    @Test func `a repeated flag counts once`() throws {
        #expect(try parse("status", "-q", "--quiet").options == ["quiet": []])
    }

    @Test func `--help does not need the other arguments`() throws {
        #expect(try parse("apply", "--help").has(.help))
        #expect(try parse("-h", "apply").command?.name == "apply")
        #expect(try parse("--help").command == nil)
        #expect(try parse("--version", "--json").has(.version))
    }

    @Test func `arguments are assigned in order`() throws {
        #expect(try parse("apply", "m", "n").arguments == ["MANIFEST": ["m"], "NAME": ["n"]])
        #expect(try parse("look").arguments.isEmpty)
        #expect(try parse("look", "a", "b").arguments == ["FILE": ["a", "b"]])
    }
}

import TestSupport
import Testing

@testable import MoultCommand

/// The completion scripts, run in their shells.
@Suite struct CompletionsTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        try scratch.write("_moult", ZshCompletions(commands: SampleCommands.commands).script)
        try scratch.write("moult.bash", BashCompletions(commands: SampleCommands.commands).script)
        try scratch.write("moult.fish", FishCompletions(commands: SampleCommands.commands).script)
        try scratch.write("release.json", "{}")
        try scratch.directory("releases")
    }

    /// The typed words, and the suggestions of a shell for the last word.
    static let cases: [(line: String, offers: [String])] = [
        ("", ["apply", "look", "shells", "status"]),
        ("s", ["shells", "status"]),
        ("--s", ["--store"]),
        ("-q --store x s", ["shells", "status"]),
        ("shells ", ["bash", "zsh"]),
        ("shells b", ["bash"]),
        ("shells bash ", []),
        ("apply --k", ["--keep", "--kind"]),
        ("apply --kind ", ["cache", "user"]),
        ("apply --keep ", []),
        ("apply rel", ["release.json", "releases"]),
        ("apply -o rel", ["release.json", "releases"]),
        ("apply --store rel", ["releases"]),
        ("apply m --kind user --f", ["--force"]),
        ("apply m ", []),
        ("look a b rel", ["release.json", "releases"]),
        ("status --fo", []),
    ]

    @Test(arguments: cases)
    func `bash completes words`(_ line: String, offers: [String]) throws {
        let words = line.split(separator: " ", omittingEmptySubsequences: false).joined(separator: "' '")
        let run = try scratch.moult(
            """
            rm -f command out.txt
            source ./moult.bash
            COMP_WORDS=(moult '\(words)'); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _moult; printf '%s\\n' "${COMPREPLY[@]}"
            """)
        #expect(run.err == "")
        #expect(run.out.split(separator: "\n").map(String.init).sorted() == offers)
    }

    @Test func `bash completes a value after an equals sign`() throws {
        let run = try scratch.moult(
            """
            source ./moult.bash
            COMP_WORDS=(moult --store = x apply --kind = us); COMP_CWORD=7; _moult; echo "${COMPREPLY[@]}"
            COMP_WORDS=(moult apply --kind =); COMP_CWORD=3; _moult; echo "${COMPREPLY[@]}"
            """)
        #expect(run.out == "user\nuser cache\n")
    }

    @Test(.tags(.thorough), arguments: cases)
    func `fish completes words`(_ line: String, offers: [String]) throws {
        let run = try scratch.moult("rm -f command; fish -c 'source moult.fish; complete -C \"moult \(line)\"'")
        #expect(run.err == "")
        let words = run.out.split(separator: "\n").map { offer in
            let word = offer.split(separator: "\t").first.map(String.init) ?? ""
            return word.hasSuffix("/") ? String(word.dropLast()) : word
        }
        #expect(words.sorted() == offers)
    }

    @Test(.tags(.thorough)) func `zsh accepts the completion script`() throws {
        #expect(try scratch.moult("zsh -n _moult") == (0, "", ""))
    }
}

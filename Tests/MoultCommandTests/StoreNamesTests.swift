import MoultFiles
import TestSupport
import Testing

/// Shells complete names from the current store, using the built command.
@Suite(.tags(.thorough)) struct StoreNamesTests {
    let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        var release = ""
        for version in 1...2 {
            release = try maker.make(
                "\(version).0.0", sequence: version,
                [
                    .reference("food", "CREATE TABLE food(x\(version))"),
                    .user("diary", "CREATE TABLE meal(x)"),
                ])
            try scratch.must("moult apply -q --create -s 'my store' \(release)")
        }
        try scratch.must("moult hold -q -s 'my store' 3.0.0 --reason test")
        try scratch.must("for s in bash zsh fish; do moult completions $s > moult.$s; done")
    }

    private func offers(_ shell: String, _ line: String) throws -> [String] {
        let words = line.split(separator: "|", omittingEmptySubsequences: false).map { "'\($0)'" }
        let script =
            switch shell {
            case "bash":
                "source ./moult.bash; COMP_WORDS=(moult \(words.joined(separator: " "))); "
                    + "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _moult; printf '%s\\n' \"${COMPREPLY[@]}\""
            default:
                "fish -c 'source moult.fish; complete -C \"moult \(line.replacing("my store", with: "my\\ store").replacing("|", with: " "))\"' | cut -f 1"
            }
        return try scratch.must(script).split(separator: "\n").map(String.init).sorted()
    }

    @Test(
        arguments: ["bash", "fish"],
        [
            ("verify|-s|my store|", ["diary", "food"]), ("verify|--store|my store|fo", ["food"]),
            ("reset|-s|my store|", ["diary", "food"]), ("unhold|-s|my store|", ["3.0.0"]),
            ("rollback|-s|my store|--to|2.0.0", ["2.0.0"]), ("verify|-s|nowhere|", []),
            ("quarantine|-s|my store|", []),
        ])
    func `completion offers the names in the store`(shell: String, `case`: (line: String, offers: [String])) throws {
        let found = try offers(shell, `case`.line).filter { !$0.contains("+") }
        #expect(found == `case`.offers)
    }

    /// Adds a hold to the settings; `release` becomes part of a sed script.
    private func hold(_ release: String) throws {
        let settings = "\"hold\": { \"release\": \"\(release)\", \"reason\": \"x\" }, \"keep\""
        try scratch.must("sed -i 's/\"keep\"/\(settings)/' 'my store/moult.json'")
    }

    @Test(arguments: ["bash", "fish"])
    func `completion does not run a command in a name`(shell: String) throws {
        try hold("$(touch PWNED)")
        #expect(try scratch.must("moult completions holds -s 'my store'") == "$(touch PWNED)\n3.0.0\n")
        let quoted = shell == "bash" ? "\\$\\(touch\\ PWNED\\)" : "$(touch PWNED)"
        #expect(try offers(shell, "unhold|-s|my store|").contains(quoted))
        #expect(try scratch.must("find . -name PWNED").isEmpty)
    }

    @Test func `a name with a control character is not offered`() throws {
        try hold("4.0.0\\\\nother")
        #expect(try scratch.must("moult status -s 'my store'").contains("4.0.0"))
        #expect(try scratch.must("moult completions holds -s 'my store'") == "3.0.0\n")
    }

    @Test func `looking up names for completion changes nothing`() throws {
        let before = try Tree(scratch.path("my store"))
        for kind in ["databases", "releases", "holds", "quarantine"] {
            try scratch.must("moult completions \(kind) -s 'my store'")
        }
        #expect(try Tree(scratch.path("my store")) == before)
    }

    /// zsh completes only on a terminal, so this test runs zsh on a pseudo-terminal and sends Tab.
    @Test func `zsh completes names from the store`() throws {
        try scratch.must("mkdir f && mv moult.zsh f/_moult")
        try scratch.write(
            "press.py",
            """
            import os, pty, sys, time, select
            child, terminal = pty.fork()
            if child == 0:
                os.environ["PS1"] = "READY> "
                os.execvp("zsh", ["zsh", "-f"])
            seen = b""
            def until(text, seconds=60):
                global seen
                end = time.time() + seconds
                while text not in seen:
                    if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
                        sys.exit("not seen: %r in %r" % (text, seen))
                    seen += os.read(terminal, 10000)
                seen = seen.split(text, 1)[1]
            until(b"READY> ")
            os.write(terminal, b"fpath=($PWD/f $fpath); autoload -Uz compinit; compinit -u -D; echo lo''aded\\n")
            until(b"loaded")
            until(b"READY> ")
            for line in (b"moult verify --store 'my store' fo", b"moult verify -s my\\\\ store fo"):
                os.write(terminal, line)
                until(b"fo")
                os.write(terminal, b"\\t")
                until(b"od")
                os.write(terminal, b"\\x15")
            print("completed")
            os.kill(child, 9)
            """)
        #expect(try scratch.must("TERM=dumb python3 press.py") == "completed\n")
    }
}

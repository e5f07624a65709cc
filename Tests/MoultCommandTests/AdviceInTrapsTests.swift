import MoultBasics
import TestSupport
import Testing

/// A command that is advised works as printed and does what the advice says, whatever the paths in the message contain.
@Suite struct AdviceInTrapsTests {
    /// Names of the directory with all files: an option, quotes, the end of a sentence, commands, control characters. Only bash
    /// and zsh have a notation for a word with a line feed in it.
    static let traps = [
        Trap(name: "-it's \"a\" $(x): moult status x, y. b\\", shell: "sh"),
        Trap(name: "a: moult recover.\n: mv x (RELEASE)\t--undo", shell: "bash"),
    ]
    struct Trap: Sendable {
        let name: String
        let shell: String
    }

    /// A command that fails and the one that its message advises. `$D` is the directory of the trap.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The commands before, which succeed.
        var before = ""
        let line: String
        /// The words of the message before the command, and those after it.
        let after: String
        var until = "\n"
        /// What the user puts in place of the placeholder `RELEASE`.
        var release = ""
        /// Commands that succeed afterwards.
        let check: String

        init(
            _ name: String, before: String = "", _ line: String, after: String, until: String = "\n",
            release: String = "",
            check: String
        ) {
            (testDescription, self.before, self.line, self.after) = (name, before, line, after)
            (self.until, self.release, self.check) = (until, release, check)
        }
    }

    static let cases = [
        Case(
            "no feed", #"moult apply --store="$D/s""#, after: "To install a release without a feed: ",
            release: "rel/test-2.0.0.json", check: #"moult status --store="$D/s" | grep 'test 2.0.0'"#),
        Case(
            "downgrade", #"moult apply --store="$D/s" -- "$D/rel/test-1.0.0.json""#, after: "To install it anyway: ",
            until: ". To roll back", check: #"moult status --store="$D/s" | grep 'test 1.0.0'"#),
        Case(
            "rollback instead", #"moult apply --store="$D/s" -- "$D/rel/test-1.0.0.json""#,
            after: "To roll back instead: ",
            check: #"moult status --store="$D/s" | grep 'test 1.0.0'"#),
        Case(
            "no store", #"moult apply --store="$D/none" -- "$D/rel/test-1.0.0.json""#,
            after: "or with the first release: ", check: #"moult status --store="$D/none" | grep 'test 1.0.0'"#),
        Case(
            "only one other release", #"moult rollback --store="$D/s" --to 2.0.0"#, after: "To roll back to it: ",
            check: #"moult status --store="$D/s" | grep 'test 1.0.0'"#),
        Case(
            "hold", before: #"moult rollback -q --store="$D/s""#,
            #"moult apply --store="$D/s" -- "$D/rel/test-2.0.0.json""#, after: "Remove the hold with: ",
            check: #"moult apply -q --store="$D/s" -- "$D/rel/test-2.0.0.json""#),
        Case(
            "reset of user data", #"moult reset user --store="$D/s""#, after: "If you want that: ",
            check: #"moult quarantine --store="$D/s" | grep user"#),
        Case(
            "no set", #"moult quarantine --restore nope --store="$D/s""#, after: "To list the sets: ", check: "true"),
        Case(
            "bundle", before: #"moult rollback -q --store="$D/s"; moult unhold -q --all --store="$D/s""#,
            #"moult apply --store="$D/s" -- "$D/rel/test-2.0.0.tar.zst""#,
            after: "Install the release from its manifest: ", check: #"moult status --store="$D/s" | grep 'test 2.0.0'"#
        ),
        Case(
            "saved plan",
            before: #"moult rollback -q --store="$D/s"; moult unhold -q --all --store="$D/s"; "#
                + #"moult plan -q --output="$D/p" --store="$D/s" -- "$D/rel/test-2.0.0.json" || [ $? = 2 ]"#,
            #"moult apply --store="$D/s" -- "$D/p""#, after: "Apply the plan: ",
            check: #"moult status --store="$D/s" | grep 'test 2.0.0'"#),
        Case(
            "obstacle", before: #"rm "./$D/s/food.db"; mkdir "./$D/s/food.db""#,
            #"moult apply --store="$D/s" -- "$D/rel/test-2.0.0.json""#, after: "or special file away: ",
            check: #"moult apply -q --store="$D/s" -- "$D/rel/test-2.0.0.json"; test -d "./$D/s/food.db.old""#),
        Case(
            "settings", before: #"echo '{}' > "./$D/s/moult.json""#, #"moult status --store="$D/s""#,
            after: "move it away first: ", check: #"test ! -e "./$D/s/moult.json"; test -e "./$D/s/moult.json.old""#),
        Case(
            "no file to replace", #"moult replace -- "$D/nope.db" "$D/s/food.db""#,
            after: "To copy a database to this path: ",
            check: #"cmp "./$D/nope.db" "./$D/s/food.db""#),
        Case(
            "hard link", before: #"sqlite3 "./$D/a.db" 'CREATE TABLE t(x)'; ln "./$D/a.db" "./$D/b.db""#,
            #"moult replace -- "$D/a.db" "$D/s/food.db""#, after: "give the database a file of its own: ",
            check: #"moult replace -q --yes -- "$D/a.db" "$D/s/food.db"; sqlite3 "./$D/a.db" 'SELECT * FROM food'"#),
        Case(
            "not in UTF-8", before: #"printf '{ "product": "\351" }' > "./$D/l.json""#, #"moult pack -- "$D/l.json""#,
            after: "If it is in Latin-1: ", check: #"grep 'é' "./$D/l.json""#),
        Case(
            "no directory of a feed", #"moult publish --allow-unsigned -- "$D/rel/test-1.0.0.json""#,
            after: "Specify the directory first: ", check: "test -f public/feed.json"),
        Case(
            "another file", before: #"echo 'CREATE TABLE t(x);' > "./$D/b.sql"; echo text > "./$D/out""#,
            #"sqlite3 "./$D/out.db" 'CREATE TABLE u(x); CREATE TABLE v(x)'; moult build --output="$D/out.db" -- "$D/b.sql""#,
            after: "or move this one away: ", check: #"moult build -q --output="$D/out.db" -- "$D/b.sql""#),
        Case(
            "damaged history", before: #"echo x >> "./$D/s/.moult/history.jsonl""#, #"moult history --store="$D/s""#,
            after: "Repair the history with: ", check: #"test -z "$(moult history --store="$D/s" 2>&1 >/dev/null)""#),
    ]

    private func world(_ trap: Trap) throws -> VerbWorld {
        let world = try VerbWorld()
        try world.must(
            script(
                trap,
                #"""
                mkdir "./$D"; cp -r rel "./$D/"; moult init -q --product org.example.test -- "$D/s"
                for number in 1 2; do moult apply -q --store="$D/s" -- "$D/rel/test-$number.0.0.json"; done
                """#))
        return world
    }

    private func script(_ trap: Trap, _ lines: String) -> String { "D=\(shellLine([trap.name]))\n\(lines)" }

    private static let pairs = cases.flatMap { it in traps.map { (it, $0) } }

    @Test(.tags(.sampled), arguments: pairs.sampled(12))
    func `the command works as printed`(_ it: Case, _ trap: Trap) throws {
        let world = try world(trap)
        try world.must(script(trap, it.before))
        let ended = try world.run(script(trap, it.line))
        let start = try #require(ended.err.firstRange(of: it.after), "\(ended)").upperBound
        let rest = ended.err[start...]
        let command = String(rest[..<(rest.firstRange(of: it.until)?.lowerBound ?? rest.endIndex)])
            .replacing(" RELEASE", with: " \(it.release)")
        try world.must("\(trap.shell) -ec \(shellLine([command]))")
        try world.must(script(trap, it.check))
    }

    @Test(arguments: traps) func `a path in the text stays as it is`(_ trap: Trap) throws {
        let world = try world(trap)
        let root = visible(world.scratch.path("\(trap.name)/s"))
        let ended = try world.run(script(trap, #"moult apply --store="$D/s""#))
        #expect(ended.err.contains("or add \"feed\" to \(root)/moult.json. To install"), "\(ended)")
        try world.must(script(trap, #"echo x >> "./$D/s/.moult/history.jsonl""#))
        let history = try world.run(script(trap, #"moult history --store="$D/s""#))
        #expect(history.err.contains("1 line of \(root)/.moult/history.jsonl cannot be read"), "\(history)")
        #expect(history.err.split(separator: "--store", omittingEmptySubsequences: false).count == 2, "\(history)")
    }
}

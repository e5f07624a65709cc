import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// `moult publish --upload-with … --fetch-with …` reads the public feed before it replaces it: no publisher takes stores out of
/// service or loses the releases of another one.
@Suite struct PublicFeedTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.key("a")
        for number in 1...4 { try bench.release("\(number).0.0", sequence: number) }
        // A store of objects, without and with conditions.
        let up = "cp \"$MOULT_FILE\" \"away/$MOULT_NAME.$$\" && mv \"away/$MOULT_NAME.$$\" \"away/$MOULT_NAME\""
        try Files.replace(
            bench.path("up"), with: Array("[ ! -e before-$MOULT_NAME ] || . ./before-$MOULT_NAME\n\(up)\n".utf8))
        let condition = """
            if [ "$MOULT_NAME" = feed.json ]; then
                exec 9> lock; flock 9
                if [ -n "$MOULT_IF_NONE_MATCH" ]; then [ ! -e away/feed.json ] || exit 75; fi
                if [ -n "$MOULT_IF_MATCH" ]; then [ "$MOULT_IF_MATCH" = "$(sha256sum < away/feed.json)" ] || exit 75; fi
            fi
            """
        try Files.replace(bench.path("up-if"), with: Array("\(condition)\n\(up)\n".utf8))
        let down = "cp \"away/$MOULT_NAME\" \"$MOULT_FILE\" && sha256sum < \"$MOULT_FILE\" > \"$MOULT_TAG_FILE\""
        try Files.replace(bench.path("down"), with: Array(down.utf8))
        try bench.must("mkdir away")
    }

    private func line(_ directory: String, _ rest: String = "", up: String = "up") -> String {
        "moult publish -q \(directory) -k a.key --upload-with 'sh \(up)' --fetch-with 'sh down' \(rest)"
    }

    private func release(_ number: Int) -> String { "rel/test-\(number).0.0.json" }

    private func publicFeed() throws -> (serial: Int?, versions: [String]) {
        let bytes = try Files.read(bench.path("away/feed.json"), limit: 1 << 20) ?? []
        let feed = try JSON(parsing: bytes, source: "feed")
        return (
            feed["serial"]?.integer.map { Int($0) }, feed["releases"]?.array?.compactMap { $0["version"]?.string } ?? []
        )
    }

    private func follow() throws {
        try bench.must("moult apply -q --create --key a.pub away && moult publish away --check --trust a.pub -q")
    }

    @Test func `a publisher on a fresh machine continues the public feed`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        for number in 2...3 { try bench.must(line("one", release(number))) }
        try follow()
        try bench.must(line("two", release(4)))
        #expect(try publicFeed() == (4, ["1.0.0", "2.0.0", "3.0.0", "4.0.0"]))
        try bench.must("moult apply -q")
        #expect(try bench.installed() == "4.0.0")
        try follow()
    }

    @Test func `a second publisher keeps the releases of the first one`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must(line("two", release(2)))
        try bench.must(line("one", release(3)))
        try bench.must(line("two"))
        #expect(try publicFeed() == (4, ["1.0.0", "2.0.0", "3.0.0"]))
        try follow()
    }

    /// Every feed starts in the same way, so the beginning of a file does not show whose upload has stopped.
    @Test func `a feed of another machine that is cut off is not replaced`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must(line("two", release(2)))
        try bench.must("cp away/feed.json whole && head -c 20 whole > away/feed.json")
        let refused = try bench.run(line("one", release(3)))
        #expect(refused.status == 3 && refused.errors.contains("the public feed cannot be verified"), "\(refused)")
        try bench.must("cp whole away/feed.json")
        try bench.must(line("one", release(3)))
        #expect(try publicFeed().versions == ["1.0.0", "2.0.0", "3.0.0"])
    }

    /// Without its signatures, the public feed would look like one of another publisher, and would be replaced.
    @Test func `a place that fails after its feed was read is not taken for one without signatures`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must(line("two", release(2)))
        try bench.must("echo '[ ! -e called ] || exit 1; touch called; . ./down' > down-once")
        let ended = try bench.run(line("one", release(3)).replacing("sh down", with: "sh down-once"))
        #expect(ended.status == 1 && ended.errors.contains("cannot read the public feed.json"), "\(ended)")
        #expect(try publicFeed() == (2, ["1.0.0", "2.0.0"]))
        try bench.must(line("one", release(3)))
        #expect(try publicFeed() == (3, ["1.0.0", "2.0.0", "3.0.0"]))
    }

    @Test func `the first feed at a place needs --new, and a later one refuses it`() throws {
        #expect(
            try bench.refusal(line("one", release(1)), status: 1) == """
                moult: error: cannot read the public feed.json: the command failed: cp: cannot stat 'away/feed.json': No such file or directory
                  Nothing was published. For the first feed at this place, add --new.

                """)
        #expect(try Files.list(bench.path("away")) == [])
        try bench.must(line("one", "\(release(1)) --new"))
        #expect(
            try bench.refusal(line("two", "\(release(2)) --new"), status: 3) == """
                moult: error: a feed is already public: --new is for the first feed, and stores refuse one that starts again
                  Publish without --new.

                """)
        #expect(try publicFeed() == (1, ["1.0.0"]))
    }

    @Test func `a serial that is not above the public one is refused`() throws {
        try bench.must(line("one", "\(release(1)) --new --serial 22"))
        #expect(
            try bench.refusal(line("two", "--serial 22"), status: 3).contains(
                "the current feed has serial 22, and stores accept only a higher one"))
        #expect(try publicFeed() == (22, ["1.0.0"]))
    }

    @Test func `--upload-with needs --fetch-with`() throws {
        let ended = try bench.run("moult publish one \(release(1)) -k a.key --upload-with 'sh up'")
        #expect(
            ended.status == 64
                && ended.errors.contains("--upload-with needs --fetch-with COMMAND: the public feed is read"))
    }

    @Test func `a public feed that no known key has signed is not continued`() throws {
        try bench.key("b")
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must(
            "sed -i 's/\"serial\": 1/\"serial\": 9/' away/feed.json && rm away/feed.json*.minisig && moult sign -q away/feed.json -k b.key"
        )
        #expect(
            try bench.refusal(line("two", release(2)), status: 3).contains(
                "the feed at sh down is not signed with any of the specified keys"))
        // It is not overwritten either, unless the publisher wants that.
        #expect(
            try bench.refusal(line("one", release(2)), status: 3).contains(
                "the public feed cannot be verified: its signature is by key \(bench.id("b"))"))
        try bench.must(line("one", "\(release(2)) --new"))
        #expect(try publicFeed() == (2, ["1.0.0", "2.0.0"]))
        try follow()
    }

    /// Such a feed looks like one of an attacker, and would be replaced without the releases of the other publisher.
    @Test(arguments: ["feed.json.*", "keys-*"])
    func `a public feed whose signatures or key lists cannot be read is not overwritten`(missing: String) throws {
        try bench.key("b")
        try bench.must(line("one", "\(release(1)) --new"))
        if missing == "keys-*" { try bench.must(line("two", "-k b.key --trust b.pub")) }
        try bench.must(line("two", release(2)).replacing("a.key", with: missing == "keys-*" ? "b.key" : "a.key"))
        let before = try publicFeed()
        try bench.must("echo 'case $MOULT_NAME in \(missing)) exit 1;; esac; . ./down' > down-some")
        let ended = try bench.run(line("one", release(3)).replacing("sh down", with: "sh down-some"))
        #expect(ended.status == 3, "\(ended)")
        #expect(try publicFeed() == before)
    }

    /// Between the request for the feed and its upload, another publisher replaces it.
    @Test func `a race ends with 75, and the next publish has both releases`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must(line("two"))
        try Files.replace(
            bench.path("before-test-2.0.0.json"),
            with: Array("rm before-test-2.0.0.json; \(line("two", release(3)))".utf8))
        #expect(
            try bench.refusal(line("one", release(2)), status: 75) == """
                moult: error: the public feed has changed: another publisher replaced it during this command
                  Run the command again: it takes in the changes.

                """)
        #expect(try publicFeed() == (3, ["1.0.0", "3.0.0"]))
        let again = try bench.run(line("one", release(2)))
        #expect(again.status == 0, "\(again.errors)")
        #expect(try publicFeed() == (4, ["1.0.0", "2.0.0", "3.0.0"]))
        try follow()
    }

    /// The other publisher overwrites the feed after this one has checked it for the last time.
    @Test func `a machine that lost a race publishes again after the other one has dropped a release`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        let late = "[ -e raced ] || { touch raced; \(line("one", release(2))); }; . ./up\n"
        try Files.replace(bench.path("up-late"), with: Array(late.utf8))
        #expect(try bench.run(line("two", up: "up-late")).status == 75)
        for rest in ["", "--keep-releases 1"] { try bench.must(line("one", rest)) }
        #expect(try publicFeed().versions == ["2.0.0"])
        // The feed of this machine that was never public lists 1.0.0, whose bundle it never had.
        for _ in 1...2 { try bench.must(line("two")) }
        #expect(try publicFeed().versions == ["2.0.0"])
    }

    @Test func `what another publisher has overwritten is taken in and named`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        try bench.must("cp -r one two; cp -r away before")
        try bench.must(line("one", release(2)))
        // The second publisher has seen the feed from before that.
        try bench.must("cp -r away after; cp before/feed.json* away")
        try bench.must(line("two", release(3)))
        #expect(try publicFeed() == (2, ["1.0.0", "3.0.0"]))
        let ended = try bench.run(line("one").replacing(" -q", with: ""))
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(
            ended.errors == "moult: warning: taken in from a feed that was overwritten: added 2.0.0\n",
            "\(ended.errors)")
        #expect(try publicFeed() == (3, ["1.0.0", "2.0.0", "3.0.0"]))
        try follow()
        // It is taken in only once.
        #expect(try bench.run(line("one").replacing(" -q", with: "")).errors == "")
    }

    /// On a fresh machine, the files of the public feed are taken into the directory.
    @Test(arguments: ["fchmod", "fsync", "rename,renameat2"])
    func `a publisher that is killed while it takes in public files can continue`(call: String) throws {
        try bench.key("b")
        for number in 1...2 { try bench.must(line("one", number == 1 ? "\(release(1)) --new" : release(2))) }
        try bench.must(line("one", "-k b.key --trust b.pub"))
        var killed = 0
        for number in 1...7 {
            try bench.must("rm -rf two")
            let words = line("two").replacing("a.key", with: "b.key")
            let ended = try bench.run(
                "strace -qq -o /dev/null -e trace=\(call) -e inject=\(call):signal=SIGKILL:when=\(number) \(words)")
            if ended.status != 0 { killed += 1 }
            try bench.must(words)
            #expect(try publicFeed().versions == ["1.0.0", "2.0.0"])
        }
        #expect(killed > 3)
    }

    /// A feed names only the 16 feeds before it.
    @Test func `a machine that was away for a long time does not bring back what was dropped`() throws {
        try bench.must(line("one", "\(release(1)) --new"))
        for number in 2...3 { try bench.must(line("one", release(number))) }
        try bench.must(line("two", "--keep-releases 1"))
        for _ in 0..<16 { try bench.must(line("two")) }
        let ended = try bench.run(line("one"))
        #expect(ended.status == 0)
        #expect(
            ended.errors == """
                moult: warning: 1.0.0, 2.0.0 are in one/feed.json, which had serial 3, but not in the public feed: dropped since, or \
                overwritten by another publisher. To publish a release again, name its manifest.

                """)
        #expect(try publicFeed() == (21, ["3.0.0"]))
        #expect(try bench.run(line("one")).errors == "")
    }

    @Test(arguments: ["up", "up-if"])
    func `of ten publishers at the same moment, none loses a release with exit status 0`(up: String) throws {
        try bench.must(line("one", "\(release(1)) --new"))
        for number in 2...9 { try bench.release("1.0.\(number)", sequence: number) }
        let commands = (2...9).map { number in
            "(\(line("m\(number)", "rel/test-1.0.\(number).json", up: up)); echo \(number) $?) &"
        }
        let ended = try bench.run(commands.joined(separator: "\n") + "\nwait")
        let done = ended.output.split(separator: "\n").filter { $0.hasSuffix(" 0") }.map { "1.0.\($0.dropLast(2))" }
        let statuses = Set(ended.output.split(separator: "\n").map { $0.split(separator: " ").last ?? "" })
        #expect(statuses.isSubset(of: ["0", "75"]) && statuses.contains("0"), "\(ended.output)\(ended.errors)")
        // With conditions nothing is overwritten; without, the publisher that was overwritten finds it.
        for version in done where up == "up" {
            let number = version.split(separator: ".").last ?? ""
            if try !publicFeed().versions.contains(version) { try bench.must(line("m\(number)")) }
        }
        #expect(try Set(publicFeed().versions).isSuperset(of: done), "\(done)")
        try follow()
    }

    @Test func `--wait waits for another publisher in the same directory`() throws {
        try bench.must("moult publish -q public \(release(1)) -k a.key")
        let ended = try bench.run(
            """
            flock public/.moult-lock sh -c 'touch held; sleep 1' & until [ -e held ]; do sleep 0.01; done
            moult publish -q public -k a.key; echo $?; moult publish -q public -k a.key --wait 60; echo $?; wait
            """)
        #expect(ended.output == "75\n0\n", "\(ended.errors)")
    }
}

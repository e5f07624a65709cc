import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultCommand

/// The read-only verbs: status, history, verify, attach, steps.
@Suite struct ReadOnlyVerbsTests {
    private let world: VerbWorld
    init() throws { world = try VerbWorld() }

    @Test(arguments: [
        "status", "status --json", "history", "verify", "verify --deep", "attach",
        "plan --allow-downgrade rel/test-1.0.0.json",
        "rollback --dry-run", "clean --dry-run --keep 1", "unhold", "sql 'SELECT * FROM food.food'",
    ])
    func `read-only verbs change nothing`(_ line: String) throws {
        try world.install(world.first, world.second)
        let tree = try world.tree
        let run = try world.run("moult \(line)")
        #expect([0, 2].contains(run.status), "\(run)")
        #expect(try world.tree == tree)
    }

    @Test(arguments: [
        ("inspect rel/test-1.0.0.json", "  schema\r\n      sha256:"), ("quarantine", "  Kept since\r\n2"),
    ])
    func `tables fit into eighty columns of a terminal`(_ line: String, _ part: String) throws {
        try world.install(world.first)
        try world.must("moult reset -q user --set-user-data-aside")
        let shown = try world.must("NO_COLOR=1 COLUMNS=80 script -qec 'moult \(line)' /dev/null")
        for row in shown.split(whereSeparator: \.isNewline) { #expect(row.count <= 80, "\(row)") }
        #expect(shown.contains(part), "\(shown)")
    }

    @Test func `status of an empty store suggests how to install a release`() throws {
        try world.install()
        #expect(
            try world.must("moult status") == """
                org.example.test: nothing is installed
                  store    \(world.store)
                  follows  newer
                  trusts   no key, so signatures are not checked
                Install a release with: moult apply RELEASE

                """)
    }

    @Test func `status shows the release, its databases and holds`() throws {
        try world.install(world.first, world.second)
        try world.must("moult hold 9.0.0 --reason 'too early'")
        let text = try world.must("moult status")
        let status = try Status(of: StoreSnapshot(world.layout))
        let (since, last) = (try #require(status.since), try #require(status.last))
        let (one, two) = (try world.generation(world.first), try world.generation(world.second))
        let sizes = Dictionary(uniqueKeysWithValues: status.generations.map { ($0.name, ByteCount($0.size)) })
        let read = try #require(status.databases.last?.time)
        let took = durationText(seconds: Double(last.milliseconds ?? 0) / 1000)
        #expect(
            text == """
                org.example.test 2.0.0
                  store    \(world.store)
                  follows  newer
                  trusts   no key, so signatures are not checked
                  since    \(since)
                  last     update 1.0.0 -> 2.0.0 done in \(took), \(last.time)
                9.0.0 is on hold: too early
                remove the hold with: moult unhold 9.0.0

                Databases:
                  ok food  reference  8.00 KiB  read-only, verified
                  ok user  user       8.00 KiB  sound on \(read), unchanged since

                Generations:
                  \(two)  \(sizes[two] ?? ByteCount(0))  in service
                  \(one)  \(sizes[one] ?? ByteCount(0))  kept

                """)
    }

    @Test(.processes) func `status --json has the same facts`() throws {
        try world.install(world.first, world.second)
        let lease = try Store(at: world.store).lease()
        let status = try #require(try world.json("moult status --json").first)
        #expect(status["installed"]?.string == "2.0.0")
        #expect(status["generation"]?.string == lease.generation)
        #expect(status["guard"]?.string == "\(Guard.level)")
        #expect(status["databases"]?.array?.compactMap { $0["state"]?.string } == ["sound", "living"])
        let current = status["generations"]?.array?.first { $0["current"]?.bool == true }
        #expect(current?["holders"]?.array?.compactMap { $0["pid"]?.integer } == [Int64(getpid())])
        #expect(try world.must("moult status").contains("  in service; read by pid \(getpid()) ("))
        withExtendedLifetime(lease) {}
    }

    @Test func `status shows problems of a database`() throws {
        try world.install(world.first)
        try world.must(
            "rm store/user.db; chmod u+w store/.moult/current/ store/.moult/current/food.db; touch store/.moult/current/food.db-wal"
        )
        let status = try world.must("moult status")
        let sealed = "\(world.store)/.moult/generations/\(try world.generation(world.first))/food.db"
        let stray = "\(sealed)-wal: it is next to the read-only database food"
        let away = "mv \(sealed)-wal \(world.store)/food.db-wal.moved"
        #expect(status.contains("\n  x food  reference  8.00 KiB  needs repair: \(stray)\n"))
        #expect(status.contains("\nrepair food with: \(away)\n"))
        #expect(status.contains("\n  x user  user              -  missing: \(world.store)/user.db\n"))
        let verify = try world.run("moult verify")
        #expect(verify.status == 1)
        #expect(
            verify.out == """
                ok food  path      sound
                ok food  seal      copied; its SHA-256 matches
                x  food  sidecars  \(stray)
                x  user  path      \(world.store)/user.db: it is missing

                4 checks: 2 found a problem
                repair food with: \(away)
                user: Restore the file. To start with a new database instead: moult reset user --set-user-data-aside

                """)
        let json = try #require(try world.json("moult verify --json").first)
        #expect(json["sound"]?.bool == false)
        #expect(json["checks"]?.array?.count { $0["sound"]?.bool == false } == 2)
    }

    @Test func `verify --deep reads the files`() throws {
        try world.install(world.first)
        #expect(
            try world.run("moult verify --deep") == (
                0,
                """
                ok food  path             sound
                ok food  seal             sound
                ok food  sidecars         sound
                ok food  digest           sound
                ok food  integrity_check  sound
                ok user  path             sound
                ok user  integrity_check  sound

                7 checks: all sound

                """, ""
            ))
        #expect(try world.run("moult verify -q") == (0, "", ""))
    }

    @Test func `verify reports an empty store`() throws {
        try world.install()
        let run = try world.run("moult verify")
        #expect(run == (1, "x store  current  nothing is installed\n\n1 check: 1 found a problem\n", ""))
    }

    @Test func `history lists the newest entry first`() throws {
        try world.install(world.first, world.second)
        try world.must("moult rollback -q")
        let lines = try world.must("moult history").split(separator: "\n").map { $0.drop { $0 != " " } }
        try #require(lines.count == 3)
        #expect(lines[0].hasPrefix("  rollback 2.0.0 -> 1.0.0 done in "))
        #expect(lines[1].hasPrefix("  update 1.0.0 -> 2.0.0 done in "))
        #expect(lines[2].hasPrefix("  update nothing -> 1.0.0 done in "))
        #expect(try world.must("moult history -n 1").split(separator: "\n").count == 1)
        let json = try #require(try world.json("moult history --json").first)
        #expect(json["entries"]?.array?.compactMap { $0["action"]?.string } == ["rollback", "update", "update"])
        #expect(json["torn"]?.integer == 0)
    }

    @Test func `torn lines of the history are reported`() throws {
        try world.install(world.first)
        try world.must("printf '{\"time\":' >> store/.moult/history.jsonl")
        let run = try world.run("moult history")
        #expect(run.status == 0)
        #expect(run.out.split(separator: "\n").count == 1)
        let file = "\(world.store)/.moult/history.jsonl"
        let warning =
            "1 line of \(file) cannot be read; a crash may have truncated it. Repair the history with: moult recover"
        #expect(run.err == "moult: warning: \(warning)\n")
        #expect(try world.json("moult history --json").first?["torn"]?.integer == 1)
    }

    @Test func `an empty history is shown`() throws {
        try world.install()
        #expect(try world.must("moult history") == "this store has no history yet\n")
    }

    /// The sqlite3 shell must accept the lines even if the path contains characters with a meaning in SQL.
    @Test func `the shell accepts the output of attach`() throws {
        try world.must(
            """
            mkdir "a'b c%20\\"d"
            export MOULT_STORE="a'b c%20\\"d/s"
            moult init --product org.example.test; moult apply -q rel/test-1.0.0.json
            moult attach > set.sql
            """)
        let out = try world.must(
            "sqlite3 -batch -init set.sql :memory: 'SELECT group_concat(name) FROM food.food; SELECT count(*) FROM main.note;' 2> notes"
        )
        #expect(out == "egg,milk\n0\n")
        let write = try world.run("sqlite3 -batch -init set.sql :memory: 'DELETE FROM food.food' 2>&1")
        #expect(write.out.contains("attempt to write a readonly database"))
    }

    @Test func `attach --json lists the databases`() throws {
        try world.install(world.first)
        let json = try #require(try world.json("moult attach --json").first)
        let databases = try #require(json["databases"]?.array)
        #expect(databases.compactMap { $0["schema"]?.string } == ["food", "main"])
        let generation = try world.generation(world.first)
        #expect(databases[0]["path"]?.string == "\(world.store)/.moult/generations/\(generation)/food.db")
        #expect(databases[1]["path"]?.string == "\(world.store)/user.db")
        #expect(json["generation"]?.string == generation)
    }

    @Test func `steps lists the built-in steps`() throws {
        let text = try world.must("moult steps")
        #expect(
            text.split(separator: "\n").map { $0.split(separator: " ").prefix(4).joined(separator: " ") } == [
                "STEP PHASE FROM WHAT", "version-check check built in", "delete delete built in", "copy copy built in",
                "attach attach built in", "verify verify built in",
            ])
    }
}

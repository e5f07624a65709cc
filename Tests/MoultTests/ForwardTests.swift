import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// An update is killed after its decision, and an app writes before recovery: nothing refuses any more, and no marker remains.
@Suite struct ForwardTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func run(_ line: String) throws -> Shell.Ended { try scratch.run(line) }
    private func value(_ name: String, _ sql: String) throws -> String {
        try Shell.must(["sqlite3", scratch.path("store/\(name).db"), sql])
    }

    private func callAfterDecision(_ call: String, on file: String = "", _ release: String) throws -> Int {
        try scratch.callAfterDecision(call, on: file, of: "store", to: "rel/test-\(release).json")
    }

    /// Kills an update at a write to a database; tries one after the other until it was decided and `condition` holds.
    private func kill(_ release: String, writing name: String, until condition: String) throws {
        let first = try callAfterDecision("pwrite64", on: "\(name).db", release)
        try scratch.must(
            """
            mv store base
            for number in $(seq \(first) 60); do
                rm -rf store; cp -a base store
                if strace -f -qq -o /dev/null -P $PWD/store/\(name).db -e trace=pwrite64 \
                    -e inject=pwrite64:signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-\(release).json; then exit 9; fi
                if ls store/.moult/transactions/*/decided.json > found 2> /dev/null && \(condition); then exit 0; fi
            done
            exit 8
            """)
    }

    private func make(_ version: String, _ sequence: Int, _ parts: [ReleaseMaker.Source]) throws {
        _ = try ReleaseMaker(in: scratch.path("rel")).make(version, sequence: sequence, parts)
    }

    /// The second database gets a row that the new release rejects, although its rule is to block such an update.
    @Test(arguments: ["block", "table"])
    func `a row that the new release rejects does not block recovery`(rule: String) throws {
        func parts(_ number: Int) -> [ReleaseMaker.Source] {
            ["first", "second"].map { name in
                .shared(
                    name,
                    """
                    CREATE TABLE item(id INTEGER PRIMARY KEY, size INTEGER\(number > 1 ? " CHECK (size < 100)" : ""), mine);
                    INSERT INTO item VALUES(\(number), \(number), 0);
                    """,
                    more: [.init("preserve", [["table": "item", "where": "mine = 1", "onReject": .string(rule)]])])
            }
        }
        for number in [1, 2] { try make("\(number).0.0", number, parts(number)) }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        for name in ["first", "second"] { _ = try value(name, "INSERT INTO item VALUES(50, 5, 1)") }
        let release = "SELECT release FROM moult_release"
        try kill(
            "2.0.0", writing: "second",
            until: "[ $(sqlite3 store/first.db '\(release)')$(sqlite3 store/second.db '\(release)') = 2.0.01.0.0 ]")
        _ = try value("second", "INSERT INTO item VALUES(60, 500, 1)")
        #expect(try run("moult recover --undo").errors.contains("can no longer be undone"))
        let ended = try run("moult recover")
        #expect(ended.status == 0, "\(ended)")
        #expect(try value("second", "SELECT id FROM item") == "2\n50\n")
        #expect(try value("second", "SELECT \"table\", row FROM moult_rejected").contains("500"))
        #expect(try run("moult verify").status == 0)
        #expect(try Files.list(scratch.path("store/.moult/transactions")) == [])
    }

    private func makeUserReleases() throws {
        let rows = "CREATE TABLE item(release);"
        for number in [1, 2] {
            let tag = number > 1 ? ", tag TEXT" : ""
            try make(
                "\(number).0.0", number,
                [
                    .shared("items", rows + "INSERT INTO item VALUES(\(number));", more: [.init("preserve", [])]),
                    .user(
                        "user", "CREATE TABLE note(text TEXT UNIQUE\(tag)); PRAGMA user_version = \(number);",
                        migrations: number > 1
                            ? [
                                "migrations/0002-tag.sql":
                                    "ALTER TABLE note ADD COLUMN tag TEXT; CREATE UNIQUE INDEX lower_text ON note(lower(text)); "
                                    + "DROP INDEX lower_text; PRAGMA user_version = 2;"
                            ] : [:]),
                ])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        _ = try value("user", "INSERT INTO note VALUES('kept')")
        let first = try callAfterDecision(Scratch.renameCall, "2.0.0")
        try scratch.must(
            """
            mv store base
            for number in $(seq \(first) 80); do
                rm -rf store; cp -a base store
                if strace -f -qq -o /dev/null -e trace=\(Scratch.renameCall) \
                    -e inject=\(Scratch.renameCall):signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-2.0.0.json; then exit 9; fi
                if ls store/.moult/transactions/*/decided.json > found 2> /dev/null; then exit 0; fi
            done
            exit 8
            """)
        try #require(value("user", "PRAGMA user_version") == "1\n")
    }

    /// Only the transaction's own marker shows that the migration was committed.
    @Test func `a user_version that the app has set is not taken for the migration`() throws {
        try makeUserReleases()
        _ = try value("user", "PRAGMA user_version = 2")
        let ended = try run("moult recover")
        #expect(ended.status == 6, "\(ended)")
        #expect(
            ended.errors.contains("is now finished, but \(scratch.path("store/user.db")) stays as it is"), "\(ended)")
        #expect(ended.errors.contains("moult apply "), "\(ended)")
        #expect(try value("user", "SELECT text FROM note; PRAGMA user_version") == "kept\n2\n")
        #expect(try value("items", "SELECT release FROM item") == "2\n")
        #expect(try Files.list(scratch.path("store/.moult/transactions")) == [])
        // The next command says what is wrong, also when it is repeated.
        for _ in 0..<2 { #expect(try run("moult apply rel/test-2.0.0.json").status == 3) }
        #expect(try run("moult status --nagios").status == 2)
        _ = try value("user", "PRAGMA user_version = 1")
        #expect(try run("moult apply rel/test-2.0.0.json").status == 0)
        #expect(try value("user", "SELECT text, tag FROM note; PRAGMA user_version") == "kept|\n2\n")
        #expect(try value("user", "SELECT name FROM sqlite_schema WHERE type = 'table'") == "note\n")
    }

    @Test func `a migration that fails on rows written since leaves that database as it is`() throws {
        try makeUserReleases()
        _ = try value("user", "INSERT INTO note VALUES('KEPT')")
        let ended = try run("moult recover")
        #expect(ended.status == 6, "\(ended)")
        #expect(try value("user", "SELECT text FROM note; PRAGMA user_version") == "kept\nKEPT\n1\n")
        #expect(try run("moult apply rel/test-2.0.0.json").status == 3)
        _ = try value("user", "DELETE FROM note WHERE text = 'KEPT'")
        #expect(try run("moult apply rel/test-2.0.0.json").status == 0)
        #expect(try value("user", "SELECT text FROM note; PRAGMA user_version") == "kept\n2\n")
    }

    /// A program has put back an old copy of the database: the update does not know this content.
    @Test func `content that another program has put there since is kept whole`() throws {
        for number in [1, 2, 3] {
            let item = "CREATE TABLE item(id INTEGER PRIMARY KEY, mine); INSERT INTO item VALUES(\(number), 0);"
            let rule = [JSON.Member("preserve", [["table": "item", "where": "mine = 1"]])]
            try make("\(number).0.0", number, [.shared("items", item, more: rule)])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json; cp store/items.db backup.db")
        try scratch.must("sqlite3 backup.db 'INSERT INTO item VALUES(70, 0), (71, 1)'")
        try scratch.must("moult apply -q --store store rel/test-2.0.0.json")
        try kill(
            "3.0.0", writing: "items",
            until: "[ $(sqlite3 store/items.db 'SELECT release FROM moult_release') = 2.0.0 ]")
        try scratch.must("sqlite3 store/items.db '.restore backup.db'")
        let ended = try run("moult recover")
        #expect(ended.status == 0, "\(ended)")
        #expect(try value("items", "SELECT id FROM item") == "3\n71\n")
        let sets = try scratch.must("moult quarantine --json")
        #expect(sets.contains("\"foreign\""), "\(sets)")
        #expect(
            try scratch.must("sqlite3 store/.moult/quarantine/*/items.db 'SELECT id FROM item WHERE id = 70'") == "70\n"
        )
    }

    /// The migration of the user database is committed, and then a program removes the file of another database.
    @Test(arguments: [("items", Int32(6)), ("extra", 6), ("thumbs", 0)])
    func `a file that is missing after the first commit does not block recovery`(name: String, status: Int32) throws {
        for number in [1, 2] {
            let item = "CREATE TABLE item(id); INSERT INTO item VALUES(\(number));"
            let tag = number > 1 ? ", tag" : ""
            let migration = "ALTER TABLE note ADD COLUMN tag; PRAGMA user_version = 2;"
            try make(
                "\(number).0.0", number,
                [
                    .shared("items", item, more: [.init("preserve", [])]),
                    .cache("thumbs", "CREATE TABLE thumb(x\(number))"),
                    .user(
                        "user", "CREATE TABLE note(text\(tag)); PRAGMA user_version = \(number);",
                        migrations: number > 1 ? ["migrations/0002.sql": migration] : [:]),
                ] + (number > 1 ? [.user("extra", "CREATE TABLE extra(x)")] : []))
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        try kill(
            "2.0.0", writing: name == "extra" ? "items" : name,
            until: "[ $(sqlite3 store/user.db 'PRAGMA user_version') = 2 ]")
        try scratch.must("rm -f store/\(name).db store/\(name).db-journal")
        let ended = try run("moult recover")
        #expect(ended.status == status, "\(ended)")
        #expect(try Files.list(scratch.path("store/.moult/transactions")) == [])
        if status == 6 { #expect(ended.errors.contains("\(name).db stays as it is"), "\(ended)") }
        if status == 6 { try scratch.must("moult reset -q \(name) --set-user-data-aside") }
        #expect(try run("moult apply rel/test-2.0.0.json").status == 0)
        #expect(try run("moult verify").status == 0)
    }

    /// SQLite would delete the journal of an empty file. No process uses the file, so the command must not end with 75 for ever.
    @Test func `a file that was emptied beside its journal does not block recovery`() throws {
        for number in [1, 2] {
            let item = "CREATE TABLE item(id); INSERT INTO item VALUES(\(number));"
            try make("\(number).0.0", number, [.shared("items", item, more: [.init("preserve", [])])])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        try kill("2.0.0", writing: "items", until: "[ -s store/items.db-journal ]")
        try scratch.must("truncate -s 0 store/items.db")
        let ended = try run("moult recover")
        #expect(ended.status == 6, "\(ended)")
        #expect(try Files.facts(scratch.path("store/items.db-journal")) != nil)
        try scratch.must(
            "moult reset -q items --set-user-data-aside; moult verify -q; ls store/.moult/quarantine/*/items.db-journal"
        )
    }

    @Test func `an undo keeps what a program has written to a read-only file of the release`() throws {
        for number in [1, 2] {
            try make(
                "\(number).0.0", number,
                [
                    .reference("codes", "CREATE TABLE code(x); INSERT INTO code VALUES(\(number))"),
                    .shared(
                        "items", "CREATE TABLE item(id); INSERT INTO item VALUES(\(number))",
                        more: [.init("preserve", [])]),
                ])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        let isSwitched = "[ $(readlink store/.moult/current | grep -c 2.0.0) = 1 ]"
        let isOld = "[ $(sqlite3 store/items.db 'SELECT id FROM item') = 1 ]"
        try kill("2.0.0", writing: "items", until: "\(isSwitched) && \(isOld)")
        try scratch.must(
            """
            file=$(readlink -f store/codes.db); chmod u+w $(dirname $file) $file
            sqlite3 $file "INSERT INTO code VALUES('written')"
            moult recover -q --undo
            """)
        #expect(try value("codes", "SELECT x FROM code") == "1\n")
        #expect(try scratch.must("sqlite3 store/.moult/quarantine/*/codes.db 'SELECT x FROM code'") == "2\nwritten\n")
    }

    @Test func `an update whose end is in the history is not undone`() throws {
        for number in [1, 2] {
            try make(
                "\(number).0.0", number,
                [.reference("codes", "CREATE TABLE code(x); INSERT INTO code VALUES(\(number))")])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        let first = try callAfterDecision(Scratch.renameCall, "2.0.0")
        try scratch.must(
            """
            mv store base
            for number in $(seq \(first) 60); do
                rm -rf store; cp -a base store
                if strace -f -qq -o /dev/null -e trace=\(Scratch.renameCall) \
                    -e inject=\(Scratch.renameCall):signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-2.0.0.json; then exit 9; fi
                if ls store/.moult/transactions/*/decided.json > found 2> /dev/null && [ $(grep -c done store/.moult/history.jsonl) = 2 ]; \
                    then exit 0; fi
            done
            exit 8
            """)
        try scratch.must("moult recover -q --undo; moult verify -q")
        #expect(try value("codes", "SELECT x FROM code") == "2\n")
        #expect(try scratch.must("grep -c done store/.moult/history.jsonl") == "2\n")
        #expect(try Files.list(scratch.path("store/.moult/transactions")) == [])
    }

    @Test func `pack refuses a database with the marker of an update`() throws {
        try scratch.must(
            "sqlite3 user.db 'CREATE TABLE note(x); CREATE TABLE moult_transaction(transaction_id TEXT NOT NULL)'")
        let databases = "{\"user\": {\"kind\": \"user\", \"source\": \"user.db\"}}"
        try Files.writeNew(
            Array(
                "{\"manifest\": 1, \"product\": \"org.example.test\", \"version\": \"1.0.0\", \"sequence\": 1, \"databases\": \(databases)}"
                    .utf8), to: scratch.path("draft.json"))
        let ended = try run("moult pack -q draft.json -o rel")
        #expect(ended.status == 3, "\(ended)")
        let command = try #require(ended.errors.split(separator: "Remove it with: ").last).split(separator: "\n")[0]
        try scratch.must("\(command); moult pack -q draft.json -o rel")
    }

    @Test(arguments: [
        "CREATE TABLE moult_transaction(transaction_id); INSERT INTO moult_transaction VALUES('mine')",
        "CREATE VIEW Moult_Transaction AS SELECT 'mine' AS transaction_id",
    ])
    func `a table of the app with the name of the marker is refused, and stays`(sql: String) throws {
        try makeUserReleases()
        try scratch.must("moult recover -q --undo")
        _ = try value("user", sql)
        let ended = try run("moult apply rel/test-2.0.0.json")
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.errors.contains("has a table or view named moult_transaction"), "\(ended)")
        #expect(try value("user", "SELECT * FROM moult_transaction") == "mine\n")
    }

    @Test func `a kill while the records are removed is not reported as an interrupted update`() throws {
        for number in [1, 2] {
            let item = "CREATE TABLE item(id); INSERT INTO item VALUES(\(number));"
            try make("\(number).0.0", number, [.shared("items", item, more: [.init("preserve", [])])])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        let first = try callAfterDecision("unlinkat", "2.0.0")
        let rounds = try scratch.must(
            """
            mv store base
            for number in $(seq \(first) 80); do
                rm -rf store; cp -a base store
                strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=SIGKILL:when=$number \
                    moult apply -q --store store rel/test-2.0.0.json && break
                [ "$(sqlite3 store/items.db 'SELECT release FROM moult_release')" = 2.0.0 ] || continue
                moult recover > out 2>&1; if grep 'before it changed anything' out; then exit 7; fi; echo round
            done
            """)
        #expect(rounds.contains("round"))
    }

    @Test func `an undo names the files that the update has created`() throws {
        for number in [1, 2] {
            let item = "CREATE TABLE item(id); INSERT INTO item VALUES(\(number));"
            var parts: [ReleaseMaker.Source] = [.shared("items", item, more: [.init("preserve", [])])]
            if number > 1 { parts.append(.user("extra", "CREATE TABLE extra(x)")) }
            try make("\(number).0.0", number, parts)
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        try kill("2.0.0", writing: "items", until: "[ -e store/extra.db ]")
        _ = try value("extra", "INSERT INTO extra VALUES('mine')")
        let ended = try run("moult recover --undo")
        #expect(ended.status == 0, "\(ended)")
        #expect(ended.errors.contains("\(scratch.path("store/extra.db")) stays: the update created it"), "\(ended)")
        #expect(try value("extra", "SELECT x FROM extra") == "mine\n")
        #expect(try run("moult apply rel/test-2.0.0.json").status == 0)
        #expect(try value("extra", "SELECT x FROM extra") == "mine\n")
    }

    @Test func `a database in use never counts as an attempt`() throws {
        for number in [1, 2] {
            let item = "CREATE TABLE item(id); INSERT INTO item VALUES(\(number));"
            try make("\(number).0.0", number, [.shared("items", item, more: [.init("preserve", [])])])
        }
        try scratch.must("moult apply -q --create --store store rel/test-1.0.0.json")
        try scratch.must("sed -i 's/{/{\"waitForApps\": 0, /' store/moult.json")
        try kill(
            "2.0.0", writing: "items",
            until: "[ $(sqlite3 store/items.db 'SELECT release FROM moult_release') = 1.0.0 ]")
        let ready = scratch.path("ready")
        let app = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute("begin exclusive")
            open(sys.argv[2], "w").close(); time.sleep(600)
            """, scratch.path("store/items.db"), ready,
        ])
        defer { app.stop() }
        try app.wait { try Files.facts(ready) != nil }
        // One more than the attempts that a recovery may take.
        for _ in 0..<4 { #expect(try run("moult apply rel/test-2.0.0.json").status == 75) }
        app.stop()
        let ended = try run("moult apply rel/test-2.0.0.json")
        #expect(ended.status == 0, "\(ended)")
    }
}

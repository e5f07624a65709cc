import MoultBasics
import MoultFiles
import TestSupport
import Testing

@Suite struct SQLVerbTests {
    private let world: VerbWorld
    init() throws {
        world = try VerbWorld()
        try world.install(world.first)
    }

    @Test func `rows are aligned in columns`() throws {
        #expect(
            try world.must(
                #"moult sql "SELECT rowid AS id, name, NULL AS no, x'00ff' AS bytes FROM food.food ORDER BY id""#)
                    == """
                    id  name  no    bytes
                     1  egg   NULL  X'00FF'
                     2  milk  NULL  X'00FF'

                    """)
    }

    @Test func `values keep their types as JSON`() throws {
        #expect(
            try world.must(
                #"moult sql --json "SELECT 1 AS i, 2.5 AS r, 'a' AS t, NULL AS n, x'00ff' AS b; SELECT 2 WHERE 0""#)
                == #"{"format":1,"columns":["i","r","t","n","b"],"rows":[[1,2.5,"a",null,{"blob":"00FF"}]]}"# + "\n"
                + #"{"format":1,"columns":["2"],"rows":[]}"# + "\n")
    }

    @Test func `with -q or --no-header, sql prints only the rows`() throws {
        #expect(try world.must("moult sql -q 'SELECT max(rowid) FROM food.food'") == "2\n")
        #expect(try world.must("moult sql --no-header 'SELECT rowid, name FROM food.food'") == "1  egg\n2  milk\n")
        #expect(try world.must("moult sql -q --write \"INSERT INTO note VALUES('x')\"") == "")
        #expect(
            try world.must("moult sql -q --json 'SELECT 1 AS one'") == #"{"format":1,"columns":["one"],"rows":[[1]]}"#
                + "\n")
    }

    @Test func `CSV has the stored values, byte for byte`() throws {
        let values =
            #"1 AS i, 2.5 AS r, NULL AS n, '' AS e, 'a,"b"' AS q, 'two' || char(10) || 'lines' AS l, x'00ff' AS b"#
        try Files.writeNew(
            Array("SELECT \(values), CAST(x'ff41' AS TEXT) AS t".utf8), to: world.scratch.path("csv.sql"))
        try world.must("moult sql --csv < csv.sql > rows.csv")
        let bytes = try #require(try Files.read(world.scratch.path("rows.csv"), limit: 1 << 16))
        #expect(
            bytes == Array("i,r,n,e,q,l,b,t\n1,2.5,,\"\",\"a,\"\"b\"\"\",\"two\nlines\",X'00FF',".utf8) + [
                0xFF, 0x41, 0x0A,
            ])
        // Another program reads the same values from the output.
        let read = try world.must(
            "python3 -c 'import csv; print(list(csv.reader(open(\"rows.csv\", encoding=\"latin-1\", newline=\"\")))[1])'"
        )
        #expect(read == #"['1', '2.5', '', '', 'a,"b"', 'two\nlines', "X'00FF'", 'ÿA']"# + "\n")
        #expect(try world.must("moult sql --csv --no-header 'SELECT 1, NULL'") == "1,\n")
        let smallest = "-9223372036854775807 - 1"
        #expect(try world.must("moult sql --csv --no-header 'SELECT \(smallest)'") == "-9223372036854775808\n")
        #expect(try world.must("moult sql -q 'SELECT \(smallest)'") == "-9223372036854775808\n")
        #expect(try world.run("moult sql --csv --json 'SELECT 1'").status == 64)
    }

    @Test func `statements can come from stdin`() throws {
        #expect(try world.must("echo 'SELECT count(*) AS n FROM food.food' | moult sql") == "n\n2\n")
        #expect(try world.run("moult sql < /dev/null").status == 64)
        #expect(try world.run("printf '\\377' | moult sql").status == 64)
    }

    /// None of these statements changes a file of the store.
    @Test(arguments: [
        "INSERT INTO note VALUES ('x')", "PRAGMA query_only = 0; INSERT INTO note VALUES ('x')", "CREATE TABLE t(x)",
        "PRAGMA user_version = 7", "PRAGMA journal_mode = WAL", "VACUUM", "DELETE FROM food.food",
        "PRAGMA query_only = 0; PRAGMA journal_mode = WAL", "SELECT 1; UPDATE note SET text = 'x'",
        "PRAGMA query_only = 0; PRAGMA user_version = 7", "REINDEX", "ANALYZE",
        "ATTACH 'new.db' AS new", "DETACH food; ATTACH 'new.db' AS food", "VACUUM INTO 'new.db'",
    ])
    func `sql writes nothing without --write`(_ sql: String) throws {
        let tree = try world.tree
        _ = try world.run("moult sql \"\(sql)\"")
        #expect(try world.tree == tree)
        #expect(try Files.facts(world.scratch.path("new.db")) == nil)
    }

    @Test func `the error of a refused ATTACH explains --write`() throws {
        #expect(
            try world.run("moult sql \"ATTACH 'new.db' AS new\"") == (
                3, "",
                """
                moult: error: cannot run "ATTACH 'new.db' AS new": ATTACH creates a missing file
                  To attach another file, use --write.

                """
            ))
        try world.must("moult sql --write \"ATTACH 'new.db' AS new; CREATE TABLE new.t(x)\"")
        #expect(try world.must("sqlite3 new.db .tables") == "t\n")
    }

    @Test func `the error of a refused write explains --write`() throws {
        #expect(
            try world.run("moult sql \"INSERT INTO note VALUES ('x')\"") == (
                3, "",
                """
                moult: error: cannot run a statement that writes: INSERT INTO note VALUES ('x')
                  To allow changes, use --write.

                """
            ))
    }

    @Test func `sql --write changes the user database, but no read-only database`() throws {
        #expect(try world.must("moult sql --write \"INSERT INTO note VALUES ('a'), ('b')\"") == "2 rows changed\n")
        #expect(try world.must("moult sql 'SELECT count(*) AS n FROM note'") == "n\n2\n")
        #expect(
            try world.run("moult sql --write 'DELETE FROM food.food'") == (
                1, "",
                """
                moult: error: cannot run "DELETE FROM food.food": attempt to write a readonly database
                  A reference database cannot be changed. For a database of another kind, this user needs write permission for the file and its directory.

                """
            ))
    }

    @Test func `sql --write reports changes that were not committed`() throws {
        let ended = try world.run("moult sql --write \"BEGIN; INSERT INTO note VALUES ('lost')\"")
        #expect(ended.0 == 3, "\(ended)")
        #expect(
            ended.2 == """
                moult: error: the changes were undone: the SQL begins a transaction and does not end it
                  Add COMMIT at the end.

                """)
        #expect(try world.must("moult sql 'SELECT count(*) AS n FROM note'") == "n\n0\n")
        #expect(try world.run("moult sql --write \"BEGIN; INSERT INTO note VALUES ('kept'); COMMIT\"").0 == 0)
        #expect(try world.run("moult sql 'BEGIN; SELECT 1'").0 == 0)
    }

    /// Each command in the advice is run.
    @Test(arguments: [
        ("thumbs", "To create it again: "), ("user", "Restore the file. To start with a new database instead: "),
    ])
    func `the error for a missing database has the command that creates it`(_ name: String, _ advice: String) throws {
        let maker = try world.maker
        let thumbs = try ReleaseMaker.Source.cache("thumbs", "CREATE TABLE thumb(image);")
        _ = try maker.make("3.0.0", sequence: 3, VerbWorld.databases(["egg"]) + [thumbs])
        try world.must("moult apply -q rel/test-3.0.0.json && rm store/\(name).db")
        let failed = try world.run("moult sql 'SELECT 1'")
        let start = "moult: error: the database \(world.store)/\(name).db is missing: a program removed it"
        #expect(failed.status == 1 && failed.err.hasPrefix(start), "\(failed)")
        let now = try #require(failed.err.split(separator: "\n").last)
        #expect(now.hasPrefix("  \(advice)moult reset "), "\(failed.err)")
        try world.must("\(now.dropFirst("  \(advice)".count)) -q && moult sql 'SELECT 1'")
    }

    @Test func `the error of a failing statement names the statement`() throws {
        #expect(
            try world.run("moult sql 'SELECT 1 AS one; SELECT * FROM fod;'") == (
                1, "one\n  1\n", "moult: error: cannot run \"SELECT * FROM fod;\": no such table: fod\n"
            ))
    }

    @Test func `control characters are shown as escapes`() throws {
        #expect(try world.must("moult sql \"SELECT char(27) || '[2J' || char(10) AS x\"") == "x\n\\u{1B}[2J\\n\n")
    }
}

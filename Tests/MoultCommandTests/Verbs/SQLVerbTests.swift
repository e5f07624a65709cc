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
}

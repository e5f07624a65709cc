import MoultFiles
import MoultPublish
import MoultSQLite
import TestSupport
import Testing

/// The same inputs give the same bytes, and the database is sealed.
@Suite struct RepeatableTests {
    private static let script = """
        PRAGMA journal_mode = WAL;
        CREATE TABLE food(pk INTEGER PRIMARY KEY, name TEXT UNIQUE, made DEFAULT CURRENT_TIMESTAMP);
        .mode csv
        .import food.csv raw
        INSERT INTO food(name) SELECT name FROM raw ORDER BY name DESC;
        DROP TABLE raw;
        CREATE INDEX i ON food(made, name);
        CREATE TABLE version(v, t);
        INSERT INTO version VALUES('${VERSION}', strftime('%s', 'now'));
        """
    private static let rows = "name\n" + (0..<3000).map { "food number \($0 * 7919 % 3000)\n" }.joined()

    private func build(_ change: (inout BuildOptions) -> Void = { _ in }) throws -> (
        bytes: [UInt8], report: BuildReport
    ) {
        let scratch = try Scratch()
        try scratch.file("data/s.sql", Self.script)
        try scratch.file("data/food.csv", Self.rows)
        var options = BuildOptions()
        options.environment = ["SOURCE_DATE_EPOCH": "1795168800"]
        options.defines = ["VERSION": "2.1.0"]
        change(&options)
        let report = try DatabaseBuilder(options).build(
            script: scratch.path("data/s.sql"), output: scratch.path("main.db"))
        #expect(try Files.list(scratch.path) == ["data", "main.db"])
        return (try scratch.bytes("main.db"), report)
    }

    @Test func `a built database does not depend on the directory`() throws {
        let first = try build()
        let second = try build()
        #expect(first.bytes == second.bytes)
        #expect(first.report.unrepeatable == [])
        #expect(first.report.size == first.bytes.count)
        #expect(first.report.sqliteVersion == "3.40.1")
    }

    @Test func `a built database has the requested properties`() throws {
        let (bytes, _) = try build {
            $0.applicationID = 0x666F_6F64
            $0.userVersion = 210
            $0.analyze = true
        }
        let scratch = try Scratch()
        let path = try scratch.file("m.db", bytes)
        let connection = try Connection(path: path, access: .immutable)
        let header = try connection.header()
        #expect(!header.isWAL)
        #expect(header.applicationID == 0x666F_6F64)
        #expect(header.userVersion == 210)
        #expect(try connection.int("SELECT count(*) FROM food") == 3000)
        #expect(try connection.int("SELECT count(*) FROM sqlite_stat1") > 0)
        #expect(
            try connection.query("SELECT DISTINCT v, t, made FROM version, food")
                == [[.text("2.1.0"), .text("1795168800"), .text("2026-11-20 10:00:00")]])
        #expect(try connection.scalar("PRAGMA integrity_check") == .text("ok"))
        try connection.close()
    }

    /// The published file does not contain rows that were imported and dropped again.
    @Test func `a built database contains no deleted content`() throws {
        let scratch = try Scratch()
        try scratch.file(
            "s.sql",
            "CREATE TABLE a(x); INSERT INTO a VALUES('a secret of the house'); DROP TABLE a; CREATE TABLE b(x);"
                + "INSERT INTO b VALUES('secret number two'); DELETE FROM b;")
        _ = try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path("m.db"))
        let bytes = try scratch.bytes("m.db")
        #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
        #expect(bytes.count == 8192)
    }

    @Test func `a build replaces the old database in one step`() throws {
        let scratch = try Scratch()
        try scratch.file("s.sql", "CREATE TABLE t(a);")
        try Shell.must(["sqlite3", scratch.path("m.db"), "CREATE TABLE old(a);"])
        let reader = try Connection(path: scratch.path("m.db"), access: .readOnly)
        _ = try DatabaseBuilder().build(script: scratch.path("s.sql"), output: scratch.path("m.db"))
        // A process that has the old database open can still read the whole old database.
        #expect(try reader.scalar("SELECT name FROM sqlite_schema") == .text("old"))
        try reader.close()
        #expect(try Shell.must(["sqlite3", scratch.path("m.db"), ".tables"]) == "t\n")
    }

    @Test func `a build does not change attached databases`() throws {
        let scratch = try Scratch()
        try scratch.directory("in")
        try Shell.must(["sqlite3", scratch.path("in/old.db"), "CREATE TABLE t(a); INSERT INTO t VALUES(1),(2);"])
        try scratch.file("in/s.sql", "ATTACH 'old.db' AS o; CREATE TABLE t AS SELECT * FROM o.t; DETACH o;")
        let before = try scratch.bytes("in/old.db")
        let report = try DatabaseBuilder().build(script: scratch.path("in/s.sql"), output: scratch.path("m.db"))
        #expect(try Shell.must(["sqlite3", scratch.path("m.db"), "SELECT * FROM t"]) == "1\n2\n")
        #expect(report.inputs == ["in/old.db", "in/s.sql"].map { scratch.path($0) })
        try scratch.file("in/s.sql", "ATTACH 'old.db' AS o; INSERT INTO o.t VALUES(3);")
        #expect(throws: (any Error).self) {
            try DatabaseBuilder().build(script: scratch.path("in/s.sql"), output: scratch.path("m.db"))
        }
        #expect(try scratch.bytes("in/old.db") == before)
        #expect(try Files.list(scratch.path("in")) == ["old.db", "s.sql"])
    }

    @Test func `a build reads files outside its directory only if allowed`() throws {
        let scratch = try Scratch()
        try scratch.file("in/s.sql", "CREATE TABLE t(a);\n.import ../t.csv t\n.read \(scratch.path("more.sql"))\n")
        try scratch.file("t.csv", "1\n")
        try scratch.file("more.sql", "INSERT INTO t VALUES(2);")
        var options = BuildOptions()
        options.allowOutside = true
        let report = try DatabaseBuilder(options).build(script: scratch.path("in/s.sql"), output: scratch.path("m.db"))
        #expect(try Shell.must(["sqlite3", scratch.path("m.db"), "SELECT * FROM t"]) == "1\n2\n")
        #expect(report.inputs == ["in/s.sql", "more.sql", "t.csv"].map { scratch.path($0) })
    }
}

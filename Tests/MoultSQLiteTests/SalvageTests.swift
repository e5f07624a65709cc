import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// Salvage copies readable rows unchanged, and reports missing rows.
struct SalvageTests {
    private let scratch: Scratch
    private var target: String { scratch.path("salvaged.db") }

    init() throws { scratch = try Scratch() }

    /// Creates a database with Python, which can define the collations and functions of an app.
    private func make(_ statements: String...) throws -> String {
        let path = scratch.path("old.db")
        try Shell.must(
            [
                "python3", "-c",
                """
                import sqlite3, sys
                c = sqlite3.connect(sys.argv[1])
                c.create_collation("de", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
                c.create_function("fold", 1, lambda s: str(s).lower(), deterministic=True)
                for s in sys.argv[2:]: c.execute(s)
                c.commit()
                """, path,
            ] + statements)
        return path
    }

    private func salvage(_ path: String, template: String? = nil) throws -> Salvage.Report {
        try Salvage.run(path, template: template, to: target, scratch: scratch.directory("scratch"))
    }

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", target, sql]) }

    @Test func `salvage copies a table whose name begins like that of a full-text table`() throws {
        let report = try salvage(
            make(
                "CREATE VIRTUAL TABLE note USING fts5(title, body)",
                "CREATE TABLE note_tags(id INTEGER PRIMARY KEY, tag)",
                "CREATE TABLE note_content_old(x)", "INSERT INTO note VALUES('one', 'bread and butter')",
                "INSERT INTO note_tags VALUES(1, 'food'), (2, 'home')", "INSERT INTO note_content_old VALUES(7)"))
        #expect(report.isWhole, "\(report)")
        #expect(
            report.tables.map { "\($0.name) \($0.rows)" }.sorted() == ["note 1", "note_content_old 1", "note_tags 2"])
        #expect(
            try sqlite("SELECT title FROM note WHERE note MATCH 'butter'; SELECT tag FROM note_tags")
                == "one\nfood\nhome\n")
        #expect(try sqlite("PRAGMA integrity_check") == "ok\n")
    }

    @Test(arguments: ["fts3", "fts4", "fts5"])
    func `salvage copies a full-text table that has its own rows`(_ module: String) throws {
        let report = try salvage(
            make(
                "CREATE VIRTUAL TABLE note USING \(module)(title, body)",
                "INSERT INTO note(rowid, title, body) VALUES(40, 'a', CAST(x'42c4ff' AS TEXT)), (90, 'b', 'rye bread')")
        )
        #expect(report.isWhole && report.rows == 2, "\(report)")
        #expect(try sqlite("SELECT rowid, hex(body) FROM note WHERE rowid = 40") == "40|42C4FF\n")
        #expect(try sqlite("SELECT title FROM note WHERE note MATCH 'rye'") == "b\n")
    }

    @Test func `salvage rebuilds a full-text index of another table`() throws {
        let report = try salvage(
            make(
                "CREATE TABLE doc(id INTEGER PRIMARY KEY, body)", "INSERT INTO doc VALUES(5, 'rye bread')",
                "CREATE VIRTUAL TABLE find USING fts5(body, content='doc', content_rowid='id')",
                "INSERT INTO find(find) VALUES('rebuild')",
                "CREATE TRIGGER doc_ai AFTER INSERT ON doc BEGIN INSERT INTO find(rowid, body) VALUES(new.id, new.body); END"
            ))
        #expect(report.isWhole, "\(report)")
        #expect(
            try sqlite(
                "SELECT rowid FROM find('rye'); INSERT INTO doc VALUES(6, 'more rye'); SELECT count(*) FROM find('rye')"
            ) == "5\n2\n")
        #expect(try sqlite("INSERT INTO find(find) VALUES('integrity-check')") == "")
    }

    @Test func `a contentless full-text index is reported as incomplete`() throws {
        let report = try salvage(
            make("CREATE TABLE t(x)", "INSERT INTO t VALUES(1)", "CREATE VIRTUAL TABLE bare USING fts5(a, content='')"))
        #expect(!report.isWhole)
        #expect(
            report.tables.first { $0.name == "bare" }?.why?.contains("salvage cannot read the rows of this") == true)
        #expect(report.tables.first { $0.name == "t" }?.isWhole == true)
    }

    @Test func `rows are salvaged byte for byte`() throws {
        let old = try make(
            "PRAGMA user_version = 7", "PRAGMA application_id = 99",
            "CREATE TABLE v(id INTEGER PRIMARY KEY AUTOINCREMENT, x)",
            "INSERT INTO v(x) VALUES(CAST(x'C4E4FF' AS TEXT)), (CAST(x'610062' AS TEXT)), (x''), (''), (9e999), (-0.0), (9223372036854775807), ('007'), (zeroblob(3)), (NULL)",
            "DELETE FROM v WHERE id = 10", "UPDATE sqlite_sequence SET seq = 500",
            "CREATE TABLE w(k TEXT PRIMARY KEY, n INT) WITHOUT ROWID", "INSERT INTO w VALUES('b', 2), ('a', 1)",
            "CREATE TABLE g(a INT, b AS (a * 2) STORED, c AS (a * 3) VIRTUAL)", "INSERT INTO g(a) VALUES(4)",
            "CREATE TABLE r(x)", "INSERT INTO r(rowid, x) VALUES(17, 'implicit')",
            "CREATE INDEX by_n ON w(n)", "CREATE VIEW both AS SELECT k FROM w",
            "CREATE TRIGGER fired AFTER INSERT ON r BEGIN DELETE FROM w; END")
        let sql = """
            SELECT id, typeof(x), hex(x), quote(x) FROM v; SELECT * FROM w; SELECT * FROM g; SELECT rowid, x FROM r;
            SELECT * FROM both; SELECT * FROM sqlite_sequence; PRAGMA user_version; PRAGMA application_id;
            SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2
            """
        let before = try Shell.must(["sqlite3", old, sql])
        let report = try salvage(old)
        #expect(report.isWhole, "\(report)")
        #expect(try sqlite(sql) == before)
        #expect(try sqlite("PRAGMA integrity_check") == "ok\n")
    }

    @Test(arguments: ["UTF-16le", "UTF-16be"])
    func `salvage keeps the text encoding`(_ encoding: String) throws {
        // A lone surrogate is not text in any encoding.
        let lone = encoding == "UTF-16le" ? "61003DD8" : "0061D83D"
        let old = try make(
            "PRAGMA encoding = '\(encoding)'", "CREATE TABLE t(x)", "INSERT INTO t VALUES(CAST(x'\(lone)' AS TEXT))")
        let report = try salvage(old)
        #expect(report.isWhole, "\(report)")
        #expect(try sqlite("PRAGMA encoding; SELECT hex(CAST(x AS BLOB)) FROM t") == "\(encoding)\n\(lone)\n")
    }

    @Test func `rows that break a CHECK are salvaged`() throws {
        let old = try make(
            "CREATE TABLE t(x CHECK(x > 0))", "PRAGMA ignore_check_constraints = 1", "INSERT INTO t VALUES(-1), (1)")
        let report = try salvage(old)
        #expect(report.isWhole, "\(report)")
        #expect(try sqlite("SELECT x FROM t") == "-1\n1\n")
    }

    /// The SQL of a database, and why its salvage is incomplete; nil if salvage is complete.
    private static let apps: [(sql: String, table: String?, other: String?)] = [
        ("CREATE TABLE t(a TEXT COLLATE de, b)", nil, nil),
        ("CREATE TABLE t(a TEXT CHECK(fold(a) <> ''), b)", nil, nil),
        ("CREATE TABLE t(a TEXT PRIMARY KEY COLLATE de, b) WITHOUT ROWID", "collation \"de\"", nil),
        ("CREATE TABLE t(a TEXT UNIQUE COLLATE de, b)", "collation \"de\"", nil),
        ("CREATE TABLE t(a TEXT, b, g AS (fold(a)) STORED)", "function \"fold\"", nil),
        ("CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a COLLATE de)", nil, "collation \"de\""),
        ("CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(fold(a))", nil, "function \"fold\""),
        (
            "CREATE TABLE t(a TEXT, b); CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET b = fold(new.a); END",
            nil, nil
        ),
    ]

    @Test(arguments: apps)
    func `rows of tables that need the app's functions are salvaged`(
        _ app: (sql: String, table: String?, other: String?)
    ) throws {
        var statements = app.sql.split(separator: "; ", maxSplits: 1).map(String.init)
        statements.insert("INSERT INTO t(a, b) VALUES('Salt', 1), ('bread', 2)", at: 1)
        let path = scratch.path("old.db")
        try Shell.must(
            [
                "python3", "-c",
                """
                import sqlite3, sys
                c = sqlite3.connect(sys.argv[1])
                c.create_collation("de", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
                c.create_function("fold", 1, lambda s: str(s).lower(), deterministic=True)
                for s in sys.argv[2:]: c.execute(s)
                c.commit()
                """, path,
            ] + statements)
        let report = try salvage(path)
        #expect(report.rows == 2, "\(report)")
        #expect(try sqlite("SELECT a, b FROM t NOT INDEXED ORDER BY b") == "Salt|1\nbread|2\n")
        #expect(report.isWhole == (app.table == nil && app.other == nil), "\(report)")
        if let why = app.table { #expect(report.tables.first?.why?.contains(why) == true, "\(report)") }
        if let why = app.other { #expect(report.missing.first?.why.contains(why) == true, "\(report)") }
    }

    @Test func `the report says that a table is incomplete because of damage`() throws {
        let old = try make(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, x)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO t SELECT i, printf('%1000d', i) FROM n"
        )
        try scratch.damage("old.db", at: 100 * 4096, with: [UInt8](repeating: 255, count: 4096))
        let report = try salvage(old)
        #expect(!report.isWhole)
        #expect(report.tables.first?.why == "part of the table is damaged")
        #expect(report.rows >= 990 && report.rows < 1000)
    }

    @Test func `a salvage report is read back from JSON unchanged`() throws {
        var report = Salvage.Report()
        report.tables = [.init(name: "t", rows: 2, isWhole: false, why: "because")]
        report.missing = [.init(kind: "index", name: "i", why: "collation")]
        report.note = "no room"
        report.mayBeRepeated = true
        #expect(Salvage.Report(json: report.json) == report)
    }

    @Test(.enabled(if: geteuid() == 0))
    func `after salvage on a full disk, the report says that salvage can be repeated`() throws {
        let old = try make(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, x)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO t SELECT i, printf('%1000d', i) FROM n"
        )
        for size in ["300k", "1500k"] {
            let small = try scratch.directory("small")
            let mounted = try Shell.run(["mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", small])
            if mounted.status != 0 { try Test.cancel("this container may not mount a small disk: \(mounted.errors)") }
            defer { _ = try? Shell.run(["umount", small]) }
            try Files.makeDirectory("\(small)/scratch")
            let report = try Salvage.run(old, template: nil, to: "\(small)/salvaged.db", scratch: "\(small)/scratch")
            #expect(report.mayBeRepeated && report.rows == 0, "\(report)")
            #expect(report.note != nil)
            #expect(try Files.list("\(small)/scratch") == [])
        }
    }
}

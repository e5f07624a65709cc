import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// Content that only the app can check does not count as damage.
struct SoundnessTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func make(_ sql: String) throws -> String {
        let path = scratch.path("app.db")
        try Shell.must([
            "python3", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.create_collation("de", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))
            c.create_function("fold", 1, lambda s: str(s).lower(), deterministic=True)
            c.executescript(sys.argv[2])
            """, path, sql,
        ])
        return path
    }

    private static let apps = [
        ("CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(a COLLATE de);", "collation \"de\""),
        ("CREATE TABLE d(a TEXT PRIMARY KEY COLLATE de, b) WITHOUT ROWID;", "collation \"de\""),
        ("CREATE TABLE d(a TEXT CHECK(fold(a) <> ''), b);", "function \"fold\""),
        ("CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(fold(a));", "function \"fold\""),
        ("CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(a) WHERE fold(a) <> '';", "function \"fold\""),
        ("CREATE TABLE d(a TEXT, b, g AS (fold(a)) NOT NULL);", "function \"fold\""),
    ]

    @Test(arguments: apps, [false, true])
    func `content that needs the app is not checked and not reported as damage`(
        _ app: (sql: String, need: String), guarded: Bool
    ) throws {
        let path = try make(
            app.sql + "INSERT INTO d(a, b) VALUES('B', 1), ('a', 2), ('C', 3); CREATE TABLE e(x NOT NULL)")
        let connection =
            try guarded
            ? Connection.openGuarded(path: path, access: .readWrite, deadline: 60)
            : Connection(path: path, access: .readWrite)
        let soundness = try connection.soundness(full: true)
        #expect(soundness.findings == [])
        #expect(soundness.notChecked.first == "table d: it needs the app's \(app.need)", "\(soundness)")
        #expect(try connection.rowCount("d") == 3)
        #expect(try connection.rowCounts() == ["d": 3, "e": 0])
        // The check must not leave a collation registered, which a later write would use.
        if app.need.hasPrefix("coll") {
            #expect(throws: MoultError.self) { try connection.execute("INSERT INTO d(a, b) VALUES('x', 9)") }
        }
    }

    @Test func `damage is found even if another table's index needs a collation of the app`() throws {
        let path = try make(
            """
            CREATE TABLE d(a TEXT, b); CREATE INDEX i ON d(a COLLATE de); INSERT INTO d VALUES('x', 'y');
            CREATE TABLE e(id INTEGER PRIMARY KEY, x);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO e SELECT i, hex(zeroblob(500)) FROM n;
            """)
        try scratch.damage("app.db", at: 40 * 4096, with: [UInt8](repeating: 255, count: 4096))
        let connection = try Connection(path: path, access: .readWrite)
        #expect(try !connection.soundness(full: false).damage.isEmpty)
    }

    @Test func `a row that violates a constraint is not damage`() {
        let soundness = Soundness(findings: ["NULL value in d.a", "CHECK constraint failed in d", "TEXT value in d.n"])
        #expect(soundness.damage == [])
        #expect(Soundness(findings: ["row 1 missing from index i"]).damage == ["row 1 missing from index i"])
    }

    @Test func `only new findings of a change count`() {
        let before = ["NULL value in d.a", "NULL value in d.a", "CHECK constraint failed in d"]
        #expect(Soundness.added(before, since: before) == [])
        #expect(Soundness.added(before + ["NULL value in d.a"], since: before) == ["NULL value in d.a"])
        // This finding is not new: the table has been renamed.
        #expect(Soundness.added(["CHECK constraint failed in e"], since: before) == [])
        #expect(Soundness.added(["row 1 missing from index i"], since: before) == ["row 1 missing from index i"])
        #expect(Soundness.added(["wrong # of entries in index i"], since: []) == ["wrong # of entries in index i"])
    }

    @Test func `a foreign key to a column that is not a key is reported`() throws {
        let path = try make("CREATE TABLE p(x); CREATE TABLE c(y REFERENCES p(x)); INSERT INTO c VALUES(1);")
        let connection = try Connection(path: path, access: .readWrite)
        #expect(try connection.references(limit: 10).findings == ["foreign key mismatch - \"c\" referencing \"p\""])
    }

    @Test func `a missing function or collation is reported with its kind and name`() {
        #expect(AppNeed(message: "error in index i: no such collation sequence: de")?.description == "collation \"de\"")
        #expect(AppNeed(message: "unknown function: fold()")?.description == "function \"fold\"")
        #expect(AppNeed(message: "no such function: fold")?.description == "function \"fold\"")
        #expect(AppNeed(message: "no such module: app_vtab")?.description == "module \"app_vtab\"")
        #expect(AppNeed(message: "no such table: d") == nil)
    }
}

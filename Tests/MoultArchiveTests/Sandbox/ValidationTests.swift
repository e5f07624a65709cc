import MoultBasics
import MoultFiles
import MoultSandbox
import TestSupport
import Testing

/// A separate process gives the same results for a sound database.
@Suite struct ValidationTests {
    static let sql = """
        PRAGMA application_id = 7; PRAGMA user_version = 3;
        CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT UNIQUE, CHECK(id > 0));
        INSERT INTO food VALUES(1, 'rye'), (2, 'oats');
        """

    @Test func `a sound database passes all checks`() throws {
        var examined = try Examined(Self.sql)
        let old = examined.scratch.path("old.db")
        try Shell.must(["sqlite3", old], input: "CREATE TABLE food(id); INSERT INTO food VALUES(1);")
        examined.validation.wantsIdentity = true
        examined.validation.wantsForeignKeys = true
        examined.validation.queries = [
            "SELECT count(*) FROM food", "SELECT name FROM food WHERE id = 9", "SELECT NULL", "SELECT x'0102'",
            "SELEC 1",
        ]
        examined.validation.tables = ["food", "gone"]
        examined.validation.old = old
        let before = try Tree(examined.scratch.path)
        let report = try examined.report()
        #expect(report.isOpen && !report.isWAL)
        #expect(report.identity?.applicationID == 7)
        #expect(report.identity?.userVersion == 3)
        #expect(report.findings == [])
        #expect(report.answers.prefix(4) == [.text("2"), .text("no row"), .text("NULL"), .text("2 bytes")])
        #expect(
            report.rows == [.init(table: "food", before: 1, after: 2), .init(table: "gone", before: nil, after: nil)])
        #expect(report.failure == nil)
        // No byte, sidecar or time of the files has changed.
        let files = { (tree: Tree) in tree.lines.dropFirst() }
        #expect(try files(Tree(examined.scratch.path)) == files(before))

        let here = try Validator.here(why: "a test").examine(
            [examined.validation], scratch: examined.scratch.path("aside"))
        #expect(here == [report])
    }

    /// More databases than processors are checked, and the results are in the order of the requests.
    @Test func `several databases are checked at once`() throws {
        let all = try (1...7).map { number in
            try Examined(
                "CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(number)) INSERT INTO t SELECT i FROM n;"
            )
        }
        let exams = all.map { examined in
            var validation = examined.validation
            validation.queries = ["SELECT count(*) FROM t"]
            return validation
        }
        let scratch = try Scratch()
        let reports = try Validator.process(BuiltMoult.path()).examine(exams, scratch: scratch.path("aside"))
        withExtendedLifetime(all) {}
        #expect(reports.map(\.answers) == (1...7).map { [.text("\($0)")] })
        #expect(try Files.list(scratch.path) == [])
    }

    /// If the command next to an app is an older moult, it cannot check databases.
    @Test func `without a program that checks databases, the app checks them itself`() throws {
        let examined = try Examined(Self.sql)
        #expect(try examined.report(by: examined.impostor("exit 64")).findings == [])
    }

    /// Otherwise, a database that compromises the checking process could make the app itself open the database.
    @Test func `if the checking process fails after its start, the app does not check the database itself`() throws {
        let examined = try Examined(Self.sql)
        #expect(
            try examined.refusal(by: examined.impostor("echo ready; exit 64"))
                == "the process that runs the check failed: it ended with status 64")
    }

    @Test func `a check stops on request`() throws {
        struct Stop: Error {}
        let examined = try Examined(Self.sql)
        let examiner = try Validator.process(examined.impostor("sleep 1000"))
        #expect(throws: Stop.self) {
            try examiner.examine([examined.validation], scratch: examined.scratch.path("aside")) { _ in throw Stop() }
        }
    }

    /// A statement that sorts more rows than fit into memory writes to the directory for temporary files.
    @Test func `sorting may use the disk`() throws {
        let examined = try Examined(
            """
            CREATE TABLE t(x);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
            INSERT INTO t SELECT hex(randomblob(250)) FROM n;
            """)
        #expect(
            try examined.answer("SELECT count(*) FROM (SELECT x FROM t ORDER BY x LIMIT -1 OFFSET 1)") == .text("39999")
        )
        #expect(try examined.answer("SELECT count(DISTINCT x) FROM t") == .text("40000"))
    }
}

import MoultBasics
import MoultFiles
import MoultLibc
import MoultSandbox
import TestSupport
import Testing

/// Malicious databases and queries: each causes an error with the reason within the time limit, and has no other
/// effect.
@Suite(.tags(.thorough)) struct MaliciousDatabaseTests {
    struct Harm: CustomTestStringConvertible {
        let testDescription: String
        let sql: String
        let query: String
        let why: String
        var processor = 60
    }

    static let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

    static let queries = [
        Harm(
            testDescription: "endless query", sql: "CREATE TABLE t(x);", query: "\(endless) SELECT max(i) FROM n",
            why: "it exceeded its time limit", processor: 1),
        Harm(
            testDescription: "endless view", sql: "CREATE VIEW v AS \(endless) SELECT max(i) AS m FROM n;",
            query: "SELECT m FROM v", why: "it exceeded its time limit", processor: 1),
        Harm(
            testDescription: "huge text", sql: "CREATE TABLE t(x);",
            query: "SELECT length(replace(hex(zeroblob(30000000)), '0', 'feather'))",
            why: "string or blob too big"),
        Harm(
            testDescription: "huge blob", sql: "CREATE VIEW v AS SELECT zeroblob(1000000000) AS x;",
            query: "SELECT length(hex(x)) FROM v",
            why: "string or blob too big"),
        Harm(
            testDescription: "code in a view", sql: "CREATE VIEW v AS SELECT load_extension('/tmp/x.so') AS x;",
            query: "SELECT x FROM v", why: "unsafe use of load_extension()"),
        Harm(
            testDescription: "a pointer in a view",
            sql: "CREATE VIEW v AS SELECT fts3_tokenizer('x', x'0011223344556677') AS x;",
            query: "SELECT x FROM v", why: "fts3_tokenizer"),
        Harm(
            testDescription: "a file in a view", sql: "CREATE VIEW v AS SELECT readfile('/etc/passwd') AS x;",
            query: "SELECT x FROM v", why: "no such function: readfile"),
        Harm(
            testDescription: "another file", sql: "CREATE TABLE t(x);", query: "ATTACH '/etc/passwd' AS p",
            why: "only reading is allowed, and this statement needs ATTACH"),
        Harm(
            testDescription: "a change", sql: "CREATE TABLE t(x);", query: "INSERT INTO t VALUES(1) RETURNING x",
            why: "only reading is allowed, and this statement needs INSERT into t"),
        Harm(
            testDescription: "a trigger's code",
            sql: "CREATE TABLE t(x); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT load_extension('/tmp/x.so'); END;",
            query: "INSERT INTO t VALUES(1)", why: "only reading is allowed"),
        Harm(
            testDescription: "a setting", sql: "CREATE TABLE t(x);", query: "PRAGMA trusted_schema = 1",
            why: "only reading is allowed, and this statement needs PRAGMA trusted_schema = 1"),
    ]

    @Test(arguments: queries)
    func `the report contains the reason why a query is refused`(harm: Harm) throws {
        let answer = try Examined(harm.sql).answer(harm.query, processor: harm.processor)
        guard case .none(let why)? = answer else {
            Issue.record("the answer is \(String(describing: answer))")
            return
        }
        #expect(why.contains(harm.why))
    }

    #if !SANITIZED  // This test needs the memory limit.
        @Test func `the memory for a check is limited`() throws {
            let columns = (0..<100).map { "hex(zeroblob(\(8_000_000 + $0)))" }.joined(separator: ", ")
            try `the report contains the reason why a query is refused`(
                harm: Harm(
                    testDescription: "much memory", sql: "CREATE TABLE t(x);", query: "SELECT \(columns)",
                    why: "out of memory"))
        }
    #endif

    /// SQLite does not check the deadline during a single function call.
    @Test func `the limit on CPU time ends a check inside a single SQL function`() throws {
        var examined = try Examined("CREATE TABLE t(x);", depth: .header)
        examined.validation.queries = ["SELECT instr(zeroblob(16000000), CAST(zeroblob(8000000) || x'01' AS BLOB))"]
        examined.validation.processor = 1
        // On a busy machine, the time may be over before this much CPU time was used.
        #expect(
            ["the check took more than 1 s of CPU time", "the check did not end in time"].contains(examined.refusal()))
    }

    /// Sorting uses temporary files, which must not fill the disk.
    @Test func `sorting cannot fill the disk`() throws {
        var examined = try Examined("CREATE TABLE t(x);", depth: .header)
        examined.validation.queries = [
            "SELECT count(*) FROM (\(Self.endless) SELECT DISTINCT i || hex(zeroblob(100000)) FROM n)"
        ]
        #expect(examined.refusal() == "the check needed more disk space than twice the database's size")
        #expect(try Files.list(examined.scratch.path) == ["food.db"])
    }

    /// The check of the file evaluates the constraint for each row.
    @Test func `a constraint cannot keep a check busy without limit`() throws {
        var examined = try Examined(
            """
            CREATE TABLE t(x, CHECK(length(replace(hex(zeroblob(400000)), '00', printf('%.20c', x))) > 0));
            PRAGMA ignore_check_constraints = 1;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i FROM n;
            """, depth: .quick)
        examined.validation.processor = 1
        let report = try examined.report()
        #expect(report.findings == nil)
        #expect(report.failure?.code == .init(412))
    }

    struct End: CustomTestStringConvertible {
        let script: String
        let why: String
        var testDescription: String { script }
    }

    @Test(arguments: [
        End(script: "kill -SEGV $$", why: "the check ended with SIGSEGV"),
        End(script: "kill -BUS $$", why: "the check ended with SIGBUS"),
        End(script: "kill -ABRT $$", why: "the check ended with SIGABRT"),
        End(script: "kill -KILL $$", why: "the check ended with SIGKILL, probably because memory ran out"),
        End(script: "echo broken >&2; exit 9", why: "the process that runs the check failed: broken"),
        End(script: "exit 9", why: "the process that runs the check failed: it ended with status 9"),
        End(script: "cat /dev/zero", why: "the result of the check is too long"),
        End(
            script: "echo x >> food.db; echo ready; echo '{\"isOpen\":true}'",
            why: "the file was changed while it was read"),
        End(
            script: "echo ready; echo '{\"rows\":3}'",
            why: "rows in the result of the check must be a list of objects, but is a whole number"),
        End(script: "exec sleep 1000", why: "the check did not end in time"),
    ])
    func `a database whose checking process ends early is refused`(end: End) throws {
        var examined = try Examined("CREATE TABLE t(x);")
        examined.validation.processor = 0
        let program = try examined.impostor("cd \(examined.scratch.path)\n\(end.script)")
        #expect(examined.refusal(by: program) == end.why)
        #expect(try Files.list(examined.scratch.path) == ["food.db", "impostor"])
    }

    @Test func `a check that ends with SIGINT counts as interrupted`() throws {
        let examined = try Examined("CREATE TABLE t(x);")
        let program = try examined.impostor("kill -INT $$")
        let error = #expect(throws: MoultError.self) { try examined.report(by: program) }
        #expect(error?.outcome == .busy)
    }
}

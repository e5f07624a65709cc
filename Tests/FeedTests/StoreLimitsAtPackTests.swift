import TestSupport
import Testing

/// `moult pack` refuses releases that stores could not open, while the publisher can still correct them.
@Suite struct StoreLimitsAtPackTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// Writes a draft with this many databases, and a golden query on the first one.
    private func draft(_ count: Int, query: String = "SELECT 1", more: String = "") throws {
        try bench.must(
            """
            rm -f d*.db; for i in $(seq \(count)); do sqlite3 d$i.db "CREATE TABLE t$i(a)"; done
            python3 - <<'END'
            import json
            json.dump({"manifest": 1, "product": "org.example.test", "version": "1.0.0",
                       "databases": {f"d{i}": {"kind": "\(more.isEmpty ? "reference" : more)" if i == 1 else "reference"}
                                     for i in range(1, \(count) + 1)},
                       "checks": [{"on": "d1", "sql": "\(query)", "expect": "1"}]}, open("draft.json", "w"))
            END
            """)
    }

    private func refusal() throws -> String {
        let refusal = try bench.refusal("moult pack draft.json -o out", status: 3)
        try bench.must("test ! -e out")
        return refusal
    }

    @Test func `pack refuses more databases in a group than can be attached to a connection`() throws {
        try draft(11)
        try bench.must("sed -i 's/\"kind\": \"reference\"/&, \"attach\": {\"group\": \"all\"}/g' draft.json")
        let message = """
            release 1.0.0 cannot be installed into an empty store: the release has 11 databases to attach in group all: \
            SQLite attaches at most 10 databases to one connection, and "attach": { "group": "NAME" } moves a database to \
            another connection
            """
        #expect(try refusal().hasPrefix("moult: error: \(message)\n"))
        // The main database is not attached, so it does not count.
        try draft(11, more: "user")
        try bench.must("moult pack draft.json -o out -q; moult apply -q --create out/*.json")
        #expect(try bench.must("moult sql --csv --no-header 'SELECT count(*) FROM d10.t10'") == "0\n")
    }

    @Test func `thirty databases of a directory get connections of their own, also in the next releases`()
        throws
    {
        try bench.must(
            "mkdir maps; for i in $(seq 30); do sqlite3 maps/m$i.db \"CREATE TABLE t(n); INSERT INTO t VALUES($i)\"; done"
        )
        let packed = try bench.run("moult pack maps --product org.example.test")
        #expect(packed.status == 0 && packed.errors.isEmpty, "\(packed.errors)")
        #expect(packed.output.contains("for example with moult sql --group m1\n"), "\(packed.output)")
        #expect(try bench.run("moult apply -q --create releases/test-1.0.0.json").errors == "")
        for number in [1, 30] {
            #expect(try bench.must("moult sql --csv --no-header --group m\(number) 'SELECT n FROM t'") == "\(number)\n")
        }
        try bench.must(
            "sqlite3 maps/m31.db 'CREATE TABLE t(n)'; moult pack -q maps; moult apply -q releases/test-1.1.0.json")
        #expect(try bench.must("moult sql --csv --no-header --group m31 'SELECT count(*) FROM t'") == "0\n")
    }

    @Test func `the eleventh database gets a connection of its own, and apps find the others where they were`() throws {
        try draft(10)
        try bench.must("moult pack draft.json -o out -q; moult apply -q --create out/*.json")
        try draft(11)
        try bench.must(
            "sed -i s/1.0.0/1.1.0/ draft.json; moult pack draft.json -o out -q; moult apply -q out/test-1.1.0.json")
        #expect(try bench.must("moult sql --csv --no-header 'SELECT count(*) FROM d1.t1, d10.t10'") == "0\n")
        #expect(try bench.must("moult sql --csv --no-header --group d11 'SELECT count(*) FROM t11'") == "0\n")
    }

    @Test func `the error of a refused release says that the draft was written`() throws {
        try bench.must(
            "sqlite3 b.db 'CREATE TABLE t(n); CREATE TABLE moult_transaction(n)'")
        let pack = "moult pack b.db --product org.example.test -o out"
        #expect(try bench.refusal(pack, status: 3).contains("  Nothing was written. "))
        #expect(
            try bench.refusal("\(pack) --write-draft b.json", status: 3).contains(
                "  Only \(bench.path("b.json")) was written, and no release. "))
        try bench.must("test -e b.json; test ! -e out")
    }

    /// Three groups of ten databases, with the same names in each group, and a main database.
    @Test func `a release with more databases is packed, installed and opened in groups`() throws {
        try bench.must(
            """
            python3 - <<'END'
            import json, sqlite3
            databases = {}
            for number in range(33):
                with sqlite3.connect(f"d{number}.db") as db:
                    db.executescript(f"CREATE TABLE t(n); INSERT INTO t VALUES({number})")
                group = [{}, {"group": "maps"}, {"group": "books"}][number // 11]
                first = number % 11 == 0
                attach = group if first else {**group, "as": f"x{number % 11}"}
                databases[f"d{number}"] = {"kind": "user" if first else "reference", "attach": attach}
            json.dump({"manifest": 1, "product": "org.example.test", "version": "1.0.0", "databases": databases,
                       "checks": [{"on": "d32", "sql": "SELECT n FROM t", "expect": "32"}]}, open("draft.json", "w"))
            END
            moult pack draft.json -o out -q
            moult apply -q --create out/*.json
            """)
        for (group, first) in [("", 0), ("--group maps", 11), ("--group books", 22)] {
            let sql = "SELECT main.t.n, x1.t.n, x10.t.n FROM main.t, x1.t, x10.t"
            let rows = try bench.must("moult sql --csv --no-header \(group) '\(sql)'")
            #expect(rows.filter { !$0.isWhitespace } == "\(first),\(first + 1),\(first + 10)")
            let shell = try bench.must(
                "moult attach \(group) > set.sql; sqlite3 -init set.sql :memory: '\(sql)' 2>/dev/null")
            #expect(shell == "\(first)|\(first + 1)|\(first + 10)\n")
        }
        let ended = try bench.run("moult sql --group map 'SELECT 1'")
        #expect(
            ended.errors == """
                moult: error: release 1.0.0 has no group "map" of databases: its groups are maps, books
                  Did you mean "maps"?

                """)
        let other = try bench.run("moult sql 'SELECT * FROM d11'")
        #expect(
            other.errors == """
                moult: error: cannot run "SELECT * FROM d11": no such table: d11
                  Only the databases without a group are open here. To open others, use --group with maps, books.

                """)
        // Two databases in one group cannot have the same name.
        let taken = try bench.run("sed -i 's/\"x2\"/\"x1\"/' draft.json; moult pack draft.json -o other")
        #expect(taken.status == 1)
        #expect(taken.errors.contains("\"x1\" is also the name by which databases.d1 is attached"), "\(taken)")
    }

    @Test(arguments: [
        ("SELECT length(hex(zeroblob(600000000)))", "string or blob too big"),
        ("SELECT 1\(String(repeating: " * 1", count: 300))", "Expression tree is too large"),
    ])
    func `pack refuses a golden query beyond the limits of stores`(query: String, reason: String) throws {
        try draft(1, query: query)
        let refusal = try refusal()
        #expect(refusal.contains("the golden query on d1 cannot run: "), "\(refusal)")
        #expect(refusal.contains(reason), "\(refusal)")
    }
}

import MoultPublish
import TestSupport
import Testing

/// The changes in the rows of a table, for every way to match rows.
@Suite struct RowDiffTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let schema: String
        var old = ""
        var new = ""
        let added: Int
        let removed: Int
        let changed: Int
        let method: TableDiff.Method
        var columns: [String] = []
    }

    static let threeRows = "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, 'c', x'00ff')"
    static let cases =
        [
            Case(
                testDescription: "integer primary key", schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)",
                old: threeRows,
                new: "INSERT INTO t VALUES (1, 'a', 1.5), (3, 'C', x'00fe'), (4, 'd', 1)",
                added: 1, removed: 1, changed: 1, method: .primaryKey(["id"]), columns: ["a", "b"]),
            Case(
                testDescription: "without rowid", schema: "CREATE TABLE t (id TEXT PRIMARY KEY, a, b) WITHOUT ROWID",
                old: "INSERT INTO t VALUES ('a', 1, 1), ('b', 2, 2), ('é', 3, 3)",
                new: "INSERT INTO t VALUES ('b', 2, 9), ('é', 3, 3), ('f', 4, 4)",
                added: 1, removed: 1, changed: 1, method: .primaryKey(["id"]), columns: ["b"]),
            Case(
                testDescription: "a key whose collation has a different order than its bytes",
                schema: "CREATE TABLE t (id TEXT COLLATE NOCASE PRIMARY KEY, a) WITHOUT ROWID",
                old: "INSERT INTO t VALUES ('a', 1), ('B', 2), ('c', 3), ('_', 4)",
                new: "INSERT INTO t VALUES ('a', 1), ('B', 2), ('C', 3), ('_', 5)",
                added: 1, removed: 1, changed: 1, method: .primaryKey(["id"]), columns: ["a"]),
            Case(
                testDescription: "a key of several columns of every class, some descending",
                schema: "CREATE TABLE t (k1, k2, a, PRIMARY KEY (k1, k2 DESC)) WITHOUT ROWID",
                old: "INSERT INTO t VALUES (1, 2, 0), (1.5, 'x', 0), (2, x'01', 0), ('1', 1, 0), (x'31', 1, 0)",
                new: "INSERT INTO t VALUES (1, 2, 0), (1.5, 'x', 1), (2, x'02', 0), ('1', 1, 0), (x'31', 1, 0)",
                added: 1, removed: 1, changed: 1, method: .primaryKey(["k1", "k2"]), columns: ["a"]),
            Case(
                testDescription: "integers that a real cannot represent, next to reals",
                schema: "CREATE TABLE t (k PRIMARY KEY, a) WITHOUT ROWID",
                old: "INSERT INTO t VALUES (9007199254740993, 1), (9007199254740992.0, 2), (-9.3e18, 3), (9.3e18, 4)",
                new: "INSERT INTO t VALUES (9007199254740993, 1), (9007199254740992.0, 2), (-9.3e18, 3), (9.3e18, 5)",
                added: 0, removed: 0, changed: 1, method: .primaryKey(["k"]), columns: ["a"]),
            Case(
                testDescription: "a declared key in addition to the rowid: rows may have different rowids",
                schema: "CREATE TABLE t (name TEXT PRIMARY KEY, a)",
                old: "INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3)",
                new: "INSERT INTO t VALUES ('z', 0), ('c', 3), ('a', 1), ('b', 22)",
                added: 1, removed: 0, changed: 1, method: .primaryKey(["name"]), columns: ["a"]),
            Case(
                testDescription: "no key: a new first row moves all other rows, which are unchanged",
                schema: "CREATE TABLE t (a, b)",
                old: "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
                new: "INSERT INTO t VALUES (0, 0), (1, 1), (2, 2), (3, 3)",
                added: 1, removed: 0, changed: 0, method: .rowid),
            Case(
                testDescription: "no key: each of several equal rows counts", schema: "CREATE TABLE t (a)",
                old: "INSERT INTO t VALUES ('x'), ('x'), ('x'), ('y')",
                new: "INSERT INTO t VALUES ('y'), ('x'), ('x')",
                added: 0, removed: 1, changed: 0, method: .rowid),
            Case(
                testDescription: "no key: a row that changed in place", schema: "CREATE TABLE t (a, b)",
                old: "INSERT INTO t VALUES (1, 1), (2, 2)", new: "INSERT INTO t VALUES (1, 1), (2, 3)",
                added: 0, removed: 0, changed: 1, method: .rowid, columns: ["b"]),
            Case(
                testDescription: "no rowid that SQL can refer to: rows are matched by content",
                schema: "CREATE TABLE t (rowid, _rowid_, oid)",
                old: "INSERT INTO t VALUES (1, 2, 3), (1, 2, 3), (4, 5, 6)",
                new: "INSERT INTO t VALUES (4, 5, 7), (1, 2, 3)",
                added: 1, removed: 2, changed: 0, method: .content),
            Case(
                testDescription: "storage classes are distinguished",
                schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
                old: "INSERT INTO t VALUES (1, 1), (2, 'x'), (3, NULL), (4, ''), (5, 0.0)",
                new: "INSERT INTO t VALUES (1, 1.0), (2, x'78'), (3, ''), (4, x''), (5, 0.0)",
                added: 0, removed: 0, changed: 4, method: .primaryKey(["id"]), columns: ["a"]),
            Case(
                testDescription: "a key with NULL in a table with rowids does not identify a row",
                schema: "CREATE TABLE t (k1, k2, a, PRIMARY KEY (k1, k2))",
                old: "INSERT INTO t VALUES (NULL, 1, 'a'), (NULL, 1, 'b'), (1, 1, 'c')",
                new: "INSERT INTO t VALUES (NULL, 1, 'b'), (NULL, 1, 'x'), (1, 1, 'c')",
                added: 0, removed: 0, changed: 1, method: .primaryKey(["k1", "k2"]), columns: ["a"]),
            Case(
                testDescription: "names with different capitalization", schema: "SELECT 1",
                old: "CREATE TABLE t (Id INTEGER PRIMARY KEY, \"odd \"\"name\" TEXT); INSERT INTO t VALUES (1, 'a')",
                new: "CREATE TABLE t (ID INTEGER PRIMARY KEY, \"odd \"\"name\" TEXT); INSERT INTO t VALUES (1, 'b')",
                added: 0, removed: 0, changed: 1, method: .primaryKey(["ID"]), columns: ["odd \"name"]),
            Case(
                testDescription: "only columns that both tables have are compared", schema: "SELECT 1",
                old: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, gone); INSERT INTO t VALUES (1, 2, 3)",
                new: "CREATE TABLE t (id INTEGER PRIMARY KEY, new, a); INSERT INTO t VALUES (1, 4, 2)",
                added: 0, removed: 0, changed: 0, method: .primaryKey(["id"])),
            Case(
                testDescription: "the tables have different keys", schema: "SELECT 1",
                old: "CREATE TABLE t (a TEXT PRIMARY KEY, b); INSERT INTO t VALUES ('x', 1), ('y', 2)",
                new: "CREATE TABLE t (a TEXT, b INTEGER PRIMARY KEY); INSERT INTO t VALUES ('x', 1), ('y', 2)",
                added: 0, removed: 0, changed: 0, method: .rowid),
            Case(
                testDescription: "generated columns follow from the others",
                schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, v AS (a + 1), s AS (a * 2) STORED)",
                old: "INSERT INTO t VALUES (1, 2)", new: "INSERT INTO t VALUES (1, 3)",
                added: 0, removed: 0, changed: 1, method: .primaryKey(["id"]), columns: ["a"]),
            Case(
                testDescription: "a full-text table", schema: "CREATE VIRTUAL TABLE t USING fts5(a, b)",
                old: "INSERT INTO t VALUES ('one', 'two'), ('three', 'four')",
                new: "INSERT INTO t VALUES ('one', 'two'), ('three', 'five')",
                added: 0, removed: 0, changed: 1, method: .rowid, columns: ["b"]),
            Case(
                testDescription: "an R-tree", schema: "CREATE VIRTUAL TABLE t USING rtree(id, x0, x1)",
                old: "INSERT INTO t VALUES (1, 0, 1), (2, 0, 1)", new: "INSERT INTO t VALUES (2, 0, 1), (3, 0, 1)",
                added: 1, removed: 1, changed: 0, method: .rowid),
        ]
        + ["le", "be"].map { order in
            Case(
                testDescription: "UTF-16\(order): keys whose order depends on the encoding",
                schema: "PRAGMA encoding = 'UTF-16\(order)'; CREATE TABLE t (k TEXT PRIMARY KEY, a) WITHOUT ROWID",
                old: "INSERT INTO t VALUES ('a', 1), (char(0xFFFD), 2), (char(0x10000), 3), (char(0x1FF), 5)",
                new: "INSERT INTO t VALUES ('a', 1), (char(0xFFFD), 2), (char(0x10000), 4), (char(0x200), 5)",
                added: 1, removed: 1, changed: 1, method: .primaryKey(["k"]), columns: ["a"])
        }

    @Test(arguments: cases, [false, true]) func `changed rows are found`(_ sample: Case, isWAL: Bool) throws {
        // In WAL mode, the comparison cannot read the records from the file, so SQLite reads every row.
        let mode = isWAL ? "PRAGMA journal_mode = WAL;" : ""
        let scratch = try Scratch()
        let old = try scratch.database("old.db", "\(mode)\(sample.schema);\(sample.old)")
        let new = try scratch.database("new.db", "\(mode)\(sample.schema);\(sample.new)")
        let diff = try DatabaseComparison("x", old: old, new: new).diff()
        let table = try #require(diff.tables.first { $0.name == "t" })
        #expect([table.added, table.removed, table.changed] == [sample.added, sample.removed, sample.changed])
        #expect(table.method == sample.method)
        #expect(table.changedColumns.map(\.name) == sample.columns)
        #expect(diff.tables.map(\.name) == ["t"])
    }

    @Test func `the reason why a table is not compared names the collation of the app`() throws {
        let scratch = try Scratch()
        try scratch.file(
            "make.py",
            """
            import sqlite3
            for name in ("old.db", "new.db"):
                c = sqlite3.connect(name)
                c.create_collation("unicase", lambda a, b: (a > b) - (a < b))
                c.execute("CREATE TABLE tag (name TEXT COLLATE unicase PRIMARY KEY, value) WITHOUT ROWID")
                c.execute("INSERT INTO tag VALUES ('a', ?)", (name,))
                c.commit()
            """)
        try scratch.must("python3 make.py")
        let diff = try DatabaseComparison("x", old: scratch.path("old.db"), new: scratch.path("new.db")).diff()
        #expect(diff.tables.map(\.method) == [.unread("it needs the app's collation \"unicase\"")])
    }

    @Test func `databases with different encodings can be compared`() throws {
        let scratch = try Scratch()
        let rows = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t VALUES (1, 'ä'), (2, 'b')"
        let old = try scratch.database("old.db", "PRAGMA encoding = 'UTF-16be'; \(rows)")
        let new = try scratch.database("new.db", "\(rows); UPDATE t SET a = 'c' WHERE id = 2")
        let diff = try DatabaseComparison("x", old: old, new: new).diff()
        #expect(diff.properties == [.init(name: "encoding", old: "UTF-16be", new: "UTF-8")])
        #expect(diff.tables.map(\.changed) == [1])
    }

    @Test func `rows of added and removed tables are counted`() throws {
        let scratch = try Scratch()
        let (old, new) = try scratch.pair(
            "CREATE TABLE same (a)", old: "CREATE TABLE gone (a); INSERT INTO gone VALUES (1), (2)",
            new: "CREATE TABLE came (a); INSERT INTO came VALUES (1)")
        let tables = try DatabaseComparison("x", old: old, new: new).diff().tables
        #expect(tables.map(\.name) == ["came", "gone", "same"])
        #expect(tables.map(\.presence) == [.added, .removed, .both])
        #expect(tables.map(\.added) == [1, 0, 0])
        #expect(tables.map(\.removed) == [0, 2, 0])
    }

    static let withoutText = ["fts5(a, content='')", "fts4(a, content=\"\")"]

    /// SQLite shows no value of such a table, so two different tables would look equal. FTS4 cannot even count their rows.
    @Test(arguments: withoutText, [(word: "one", differs: false), (word: "two", differs: true)])
    func `full-text indexes that store no text are compared by their indexes`(
        _ module: String, _ text: (word: String, differs: Bool)
    ) throws {
        let scratch = try Scratch()
        let (old, new) = try scratch.pair(
            "CREATE TABLE other (a); CREATE VIRTUAL TABLE t USING \(module)",
            old: "INSERT INTO t(rowid, a) VALUES (1, 'one')",
            new: "INSERT INTO other VALUES (1); INSERT INTO t(rowid, a) VALUES (1, '\(text.word)')")
        let tables = try DatabaseComparison("x", old: old, new: new).diff().tables
        #expect(tables.map(\.name) == ["other", "t"])
        #expect(tables.map(\.differs) == [true, text.differs])
        #expect(tables.last?.method == .index)
        #expect(tables.last?.method.words == "rows of the index: it stores no text")
    }

    @Test(arguments: withoutText) func `a new full-text index that stores no text is counted`(_ module: String) throws {
        let scratch = try Scratch()
        let (old, new) = try scratch.pair(
            "CREATE TABLE other (a)",
            new: "CREATE VIRTUAL TABLE t USING \(module); INSERT INTO t(rowid, a) VALUES (1, 'one')")
        let table = try #require(try DatabaseComparison("x", old: old, new: new).diff().tables.last)
        #expect((table.name, table.presence, table.method) == ("t", .added, .index))
        #expect(table.added > 0 && table.added == table.rowsAfter)
    }

    @Test(arguments: [
        (text: "one", word: "two", differ: [false, true]), (text: "two", word: "one", differ: [true, false]),
    ])
    func `a full-text index of another table is compared by its index, not by the text of that table`(
        text: String, word: String, differ: [Bool]
    ) throws {
        let scratch = try Scratch()
        let (old, new) = try scratch.pair(
            """
            CREATE TABLE docs(id INTEGER PRIMARY KEY, a);
            CREATE VIRTUAL TABLE t USING fts5(a, content='docs', content_rowid='id')
            """,
            old: "INSERT INTO docs VALUES (1, 'one'); INSERT INTO t(rowid, a) VALUES (1, 'one')",
            new: "INSERT INTO docs VALUES (1, '\(text)'); INSERT INTO t(rowid, a) VALUES (1, '\(word)')")
        let tables = try DatabaseComparison("x", old: old, new: new).diff().tables
        #expect(tables.map(\.name) == ["docs", "t"])
        #expect(tables.map(\.differs) == differ)
    }

    @Test func `a full-text index of which one side stores no text is not compared`() throws {
        let scratch = try Scratch()
        let (stored, none) = try (
            scratch.database("stored.db", "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES ('one')"),
            scratch.database("none.db", "CREATE VIRTUAL TABLE t USING fts5(a, content='')")
        )
        for (old, new) in [(stored, none), (none, stored)] {
            let table = try #require(try DatabaseComparison("x", old: old, new: new).diff().tables.last)
            #expect(table.method == .unread("only one side stores the text of this index"))
            #expect(table.needsOwnLine)
        }
    }

    @Test func `a table of an unknown module is reported by name`() throws {
        let scratch = try Scratch()
        let both = """
            CREATE TABLE t (a); PRAGMA writable_schema = 1;
            INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING unknown(a)')
            """
        let (old, new) = try scratch.pair(both, new: "INSERT INTO t VALUES (1)")
        let tables = try DatabaseComparison("x", old: old, new: new).diff().tables
        #expect(tables.map(\.name) == ["t", "v"])
        #expect(tables.map(\.added) == [1, 0])
        #expect(tables.last?.method == .unread("no such module: unknown"))
    }
}

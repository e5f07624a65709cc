import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Restoring rows of one table: rows that a release shipped stay out, and faults that the database had before do not matter.
extension RestoredRowsTests {
    private static let family = """
        CREATE TABLE p(id INTEGER PRIMARY KEY, n); CREATE TABLE c(id INTEGER PRIMARY KEY, p INTEGER REFERENCES p);
        """

    @Test func `a row that already violated a foreign key does not prevent a restore`() throws {
        try shop.pack("1.0.0", [.user(Self.family)])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO p VALUES(1, 'P'); INSERT INTO c VALUES(1, 1), (2, 99)")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        try shop.sql("diary.db", "INSERT INTO p VALUES(1, 'P'); INSERT INTO c VALUES(2, 99)")
        let ended = try shop.moult("quarantine", "--restore", "diary", "--table", "c")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output == "1 row of c restored\n")
        #expect(try shop.sql("diary.db", "SELECT * FROM c") == "1|1\n2|99\n")
    }

    @Test func `moult_rejected contains the reason why a row without a parent was not restored`() throws {
        try shop.pack("1.0.0", [.user(Self.family)])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO p VALUES(1, 'P'); INSERT INTO c VALUES(1, 1)")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        let ended = try shop.moult("quarantine", "--restore", "diary", "--table", "c")
        #expect(ended.output.hasPrefix("0 rows of c restored\n1 row could not be restored"), "\(ended.output)")
        #expect(
            try shop.sql("diary.db", "SELECT reason FROM moult_rejected")
                == "it refers to a row of p that does not exist\n")
    }

    @Test(arguments: ["code", "missing"])
    func `a foreign key that matches no key does not prevent a restore`(_ column: String) throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE p(id INTEGER PRIMARY KEY, code);")])
        try shop.install("1.0.0")
        let table = "CREATE TABLE c(id INTEGER PRIMARY KEY, code REFERENCES p(\(column)))"
        try shop.sql("diary.db", "\(table); INSERT INTO c VALUES(1, 'X')")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        try shop.sql("diary.db", table)
        let ended = try shop.moult("quarantine", "--restore", "diary", "--table", "c")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try shop.sql("diary.db", "SELECT * FROM c") == "1|X\n")
    }

    private static let item = "CREATE TABLE item(id INTEGER PRIMARY KEY, name);"

    @Test func `rows that the set's release shipped are not restored even if a newer release renamed the file`() throws
    {
        try shop.pack("1.0.0", [.shared(Self.item + "INSERT INTO item VALUES(1, 'S1');")])
        try shop.pack(
            "2.0.0",
            [
                .shared(
                    Self.item + "INSERT INTO item VALUES(2, 'S2');",
                    more: [.init("member", "content-2.db"), .init("path", "app.db")])
            ])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(5, 'MINE')")
        try shop.install("2.0.0")
        #expect(
            try shop.moult("quarantine", "--restore", "app", "--table", "item").output == "1 row of item restored\n")
        #expect(try shop.sql("app.db", "SELECT name FROM item ORDER BY id") == "S2\nMINE\n")
    }

    @Test func `rows that a release shipped are not restored even if the app added a column`() throws {
        try shop.pack("1.0.0", [.shared(Self.item + "INSERT INTO item VALUES(1, 'S1'), (2, 'S2');")])
        try shop.pack("2.0.0", [.shared(Self.item + "INSERT INTO item VALUES(9, 'S9');")])
        try shop.install("1.0.0")
        try shop.sql(
            "app.db",
            "ALTER TABLE item ADD COLUMN seen DEFAULT 0; UPDATE item SET seen = 1 WHERE id = 2; INSERT INTO item VALUES(5, 'MINE', 0)"
        )
        try shop.install("2.0.0")
        #expect(try shop.moult("quarantine", "--restore", "app", "--table", "item").status == 0)
        // The app has written to the second row, so that row belongs to the app.
        #expect(try shop.sql("app.db", "SELECT name FROM item ORDER BY id") == "S2\nMINE\nS9\n")
    }

    @Test func `shipped rows without a key are not restored even if VACUUM has moved them`() throws {
        try shop.pack("1.0.0", [.shared("CREATE TABLE note(t); INSERT INTO note VALUES('S1'), ('S2'), ('S3');")])
        try shop.pack("2.0.0", [.shared("CREATE TABLE note(t); INSERT INTO note VALUES('NEW');")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO note VALUES('MINE'); DELETE FROM note WHERE t = 'S1'; VACUUM")
        try shop.install("2.0.0")
        #expect(
            try shop.moult("quarantine", "--restore", "app", "--table", "note").output == "1 row of note restored\n")
        #expect(try shop.sql("app.db", "SELECT t FROM note ORDER BY t") == "MINE\nNEW\n")
    }

    @Test func `after a rollback, renamed columns of a newer set get their old names back`() throws {
        func release(_ column: String, _ more: [JSON.Member]) -> Shipped {
            let entry: [JSON.Member] = [.init("table", "item"), .init("where", "own = 1")]
            return .shared(
                "CREATE TABLE item(name TEXT PRIMARY KEY, \(column) TEXT, own INT DEFAULT 0);", [.object(entry + more)])
        }
        try shop.pack("1.0.0", [release("desc", [])])
        try shop.pack("2.0.0", [release("note", [.init("columns", ["desc": "note"])])])
        try shop.install("1.0.0")
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES('UNMARKED', 'VALUE', 0)")
        #expect(try shop.moult("rollback").status == 0)
        #expect(
            try shop.moult("quarantine", "--restore", "app", "--table", "item").output == "1 row of item restored\n")
        #expect(try shop.sql("app.db", "SELECT * FROM item") == "UNMARKED|VALUE|0\n")
    }

    @Test func `a restore does not exchange again the column names that an earlier release exchanged`() throws {
        let entry: [JSON.Member] = [
            .init("table", "item"), .init("where", "own = 1"), .init("columns", ["a": "b", "b": "a"]),
        ]
        let schema = "CREATE TABLE item(id INTEGER PRIMARY KEY, a, b, own INT DEFAULT 0);"
        try shop.pack("1.0.0", [.shared(schema, [.object(entry)])])
        try shop.pack("2.0.0", [.shared(schema + "INSERT INTO item(id) VALUES(9);", [.object(entry)])])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO item VALUES(1, 'A', 'B', 0)")
        try shop.install("2.0.0")
        #expect(try shop.moult("quarantine", "--restore", "app", "--table", "item").status == 0)
        #expect(try shop.sql("app.db", "SELECT a, b FROM item WHERE id = 1") == "A|B\n")
    }

    @Test func `a set with an index that uses the app's collation is exported and restored`() throws {
        try shop.pack("1.0.0", [.user("CREATE TABLE w(id INTEGER PRIMARY KEY, w TEXT);")])
        try shop.install("1.0.0")
        try App.run(
            shop.path("diary.db"), "CREATE INDEX wi ON w(w COLLATE appcoll)", "INSERT INTO w VALUES(1, 'MINE')")
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        let file = shop.scratch.path("export.db")
        let exported = try shop.moult("quarantine", "--export", file, "diary")
        #expect(exported.status == 0, "\(exported.errors)")
        #expect(try Shop.read(file, "SELECT w FROM w NOT INDEXED") == "MINE\n")
        let rows = try shop.moult("quarantine", "--restore", "diary", "--table", "w")
        #expect(rows.output == "1 row of w restored\n", "\(rows.errors)")
        #expect(try shop.moult("quarantine", "--restore", "diary").status == 0)
    }

    @Test func `a set is restored after a release has renamed the database at its path`() throws {
        let path: [JSON.Member] = [.init("path", "x.db")]
        try shop.pack("1.0.0", [.shared(Self.item + "INSERT INTO item VALUES(1, 'S1');", name: "a", more: path)])
        try shop.pack("2.0.0", [.shared(Self.item + "INSERT INTO item VALUES(2, 'S2');", name: "b", more: path)])
        try shop.install("1.0.0")
        try shop.sql("x.db", "INSERT INTO item VALUES(5, 'MINE')")
        #expect(try shop.moult("reset", "a", "--set-user-data-aside").status == 0)
        try shop.install("2.0.0")
        let ended = try shop.moult("quarantine", "--restore", "a", "--table", "item")
        #expect(ended.output == "1 row of item restored\n", "\(ended.errors)")
        #expect(try shop.sql("x.db", "SELECT name FROM item ORDER BY id") == "S2\nMINE\n")
    }
}

import MoultBasics
import TestSupport
import Testing

/// The output path of `moult build`.
@Suite struct BuildVerbTests {
    /// The file may hold the only copy of user data.
    @Test func `build does not replace a file in a store`() throws {
        let scratch = try Scratch()
        let refused = try scratch.moult(
            """
            echo 'CREATE TABLE t(x);' > a.sql; moult init -q store --product org.example.a; sqlite3 store/notes.db 'CREATE TABLE mine(x)'
            cp store/notes.db kept; moult build a.sql -o store/notes.db; echo $?; cmp kept store/notes.db
            """)
        #expect((refused.status, refused.out) == (0, "3\n"))
        #expect(
            refused.err == """
                moult: error: cannot build store/notes.db: it exists and belongs to a store
                  Build it elsewhere, and install it in the store with a release.

                """)
    }

    /// é has two spellings. SQLite treats them as different names, and Swift as equal.
    @Test func `build and diff distinguish two tables whose names are equivalent in Unicode`() throws {
        let scratch = try Scratch()
        let sql = "CREATE TABLE \"\u{e9}\"(a); INSERT INTO \"\u{e9}\" VALUES(1); CREATE TABLE \"e\u{301}\"(b, c);"
        try scratch.write("a.sql", Array(sql.utf8))
        try scratch.write("b.sql", Array("\(sql) INSERT INTO \"e\u{301}\" VALUES(1, 2);".utf8))
        let ended = try scratch.moult(
            "moult build -q a.sql -o a.db && moult build -q b.sql -o b.db && moult inspect a.db && moult diff a.db b.db"
        )
        let lines = ended.out.split(separator: "\n").map { Array($0.utf8) }
        for (name, rows) in [("\u{e9}", "1"), ("e\u{301}", "0")] {
            #expect(lines.contains { $0.contains(Array(name.utf8)) && $0.contains(Array(rows.utf8)) }, "\(ended)")
        }
        let json = try scratch.moult("moult diff a.db b.db --json")
        let tables = try JSON(parsing: json.out, source: "diff")["databases"]?.array?.first?["tables"]?.array ?? []
        #expect(
            tables.map { $0["added"]?.integer } == [1, 0] || tables.map { $0["added"]?.integer } == [0, 1],
            "\(json.out)")
    }

    /// The `-wal` may have the only copy of the rows.
    @Test func `the advised commands keep a database and its WAL together`() throws {
        let scratch = try Scratch()
        let crash = "import os, sqlite3; c = sqlite3.connect('y.db'); c.execute('PRAGMA journal_mode = WAL')"
        let first = try scratch.moult(
            """
            python3 -c "\(crash); c.execute('CREATE TABLE old(a)'); os._exit(0)"; rm y.db-shm
            echo 'CREATE TABLE q(a);' > q.sql; moult build q.sql -o y.db
            """)
        let advice = try #require(first.err.split(separator: "move this one away: ").last, "\(first)")
        let after = try scratch.moult(
            "\(advice)\n moult build -q q.sql -o y.db && sqlite3 y.db.old .tables; ls *.sql y.*")
        #expect(after.out == "old\nq.sql\ny.db\ny.db.old\n", "\(after)")
    }

    @Test func `build replaces an older build`() throws {
        let scratch = try Scratch()
        let twice = try scratch.moult(
            "echo 'CREATE TABLE t(x);' > a.sql; moult build -q a.sql -o a.db && moult build -q a.sql -o a.db")
        #expect(twice == (0, "", ""))
    }

    /// With `--from`, the build writes transactions to a copy of the earlier database, and the header counts them like
    /// those of an app.
    @Test func `build replaces an older build that was made with --from`() throws {
        let scratch = try Scratch()
        let built = try scratch.moult(
            """
            echo 'CREATE TABLE t(x);' > a.sql; echo 'CREATE TABLE t(x); INSERT INTO t VALUES(1);' > b.sql
            moult build -q a.sql -o a.db && moult build -q b.sql -o b.db --from a.db && moult build -q b.sql -o b.db --from a.db
            sqlite3 b.db 'PRAGMA integrity_check; SELECT * FROM t'
            """)
        #expect(built == (0, "ok\n1\n", ""))
    }

    @Test(arguments: [
        (
            "INSERT INTO t VALUES(1)",
            "it exists, and another program has created it or written to it"
        ),
        ("PRAGMA journal_mode = WAL", "it exists and is in WAL mode, so another program has written to it"),
    ])
    func `build does not replace a database that another program has written to`(_ sql: String, _ why: String) throws {
        let scratch = try Scratch()
        let refused = try scratch.moult(
            """
            echo 'CREATE TABLE t(x);' > a.sql; moult build -q a.sql -o a.db; sqlite3 a.db '\(sql)' > sql.out; cp a.db kept
            moult build a.sql -o a.db; echo $?; cmp kept a.db
            """)
        #expect((refused.status, refused.out) == (0, "3\n"))
        #expect(
            refused.err == """
                moult: error: cannot write a.db: \(why)
                  Choose another file with -o, or move this one away: mv a.db a.db.old

                """)
        #expect(try scratch.moult("mv a.db a.db.old && moult build -q a.sql -o a.db") == (0, "", ""))
    }

    /// Opening a pipe would wait for its other end, and reading a device never ends.
    @Test(arguments: ["p", "/dev/zero", "socket"])
    func `a script can only attach regular files`(_ file: String) throws {
        let scratch = try Scratch()
        let refused = try scratch.moult(
            """
            mkfifo p; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
            echo "ATTACH '\(file)' AS other;" > a.sql; timeout 20 moult build --allow-outside a.sql -o a.db; echo $?; ls a.db
            """)
        #expect(refused.out == "1\n", "\(refused)")
        #expect(refused.err.contains("\(file) is not a regular file: attach a database file."), "\(refused)")
    }
}

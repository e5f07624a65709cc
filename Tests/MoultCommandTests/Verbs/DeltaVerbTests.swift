import TestSupport
import Testing

/// The output path of `moult delta`.
@Suite struct DeltaVerbTests {
    private let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        let made = try scratch.moult(
            "sqlite3 old.db 'CREATE TABLE t(x)' && sqlite3 new.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'")
        try #require(made.status == 0, "\(made.err)")
    }

    @Test func `a patch that delta makes with little memory gives the same file`() throws {
        let made = try scratch.moult(
            """
            sqlite3 old.db "INSERT INTO t SELECT hex(randomblob(40)) FROM generate_series(1, 20000)"
            cp old.db new.db && sqlite3 new.db "UPDATE t SET x = x || 'more' WHERE rowid % 100 = 3"
            moult delta -q old.db new.db -o p --memory 128 && test $(stat -c %s p) -lt 100000
            """)
        #expect(made == (0, "", ""))
        let refused = try scratch.moult("moult delta old.db new.db -o p --memory 127")
        #expect(refused.status == 64)
    }

    /// The content of such a file is not that of any commit. The path can also be a symlink.
    @Test(arguments: ["new.db", "link.db"])
    func `delta refuses a database whose content is partly in another file`(_ name: String) throws {
        let leave = """
            import os, sqlite3
            c = sqlite3.connect("new.db", isolation_level=None)
            MODE
            c.execute("pragma cache_size = 1"); c.execute("begin")
            c.executemany("insert into t values (?)", [(str(i) * 100,) for i in range(3000)])
            END
            os._exit(0)
            """
        for (mode, end, status, why) in [
            ("pass", "pass", 1, "has a hot journal: its last writer did not finish"),
            ("c.execute('pragma journal_mode = wal')", "c.execute('commit')", 3, "part of its content is in"),
        ] {
            let script = leave.replacing("MODE", with: mode).replacing("END", with: end)
            try scratch.write("leave.py", Array(script.utf8))
            let refused = try scratch.moult(
                "ln -sf new.db link.db && python3 leave.py && moult delta old.db \(name) -o p; echo $?; test ! -e p")
            #expect(refused.status == 0 && refused.out == "\(status)\n", "\(refused)")
            #expect(refused.err.contains(why), "\(refused.err)")
        }
    }

    /// Each write of the copies from which the patch is made is delayed, so that the change comes before the last one.
    @Test(arguments: ["old.db", "new.db"])
    func `delta makes no patch of a file that a program changes while it is copied`(_ name: String) throws {
        let busy = try scratch.moult(
            """
            for db in old.db new.db; do
                sqlite3 $db "INSERT INTO t SELECT randomblob(1000) FROM generate_series(1, 4000)"
            done
            strace -f -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:delay_enter=300000 moult delta old.db new.db -o p & delta=$!
            until test -s .p.moult-new.new; do kill -0 $delta || exit 99; done
            sqlite3 \(name) "UPDATE t SET x = zeroblob(1000) WHERE rowid = 1"
            wait $delta
            """)
        #expect(busy.status == 75, "\(busy)")
        #expect(
            busy.err
                == "moult: error: \(name) was changed while it was read: a process opened the database or wrote to it\n  Try again.\n"
        )
        #expect(try scratch.moult("ls -A | grep -F p") == (1, "", ""))
    }
}

import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Swift treats a slash or a quote and a mark next to it as one character, and two encodings of é as equal. SQLite, the kernel and
/// shells read bytes. Names that use this difference do no harm.
@Suite struct ByteNamesTests {
    private let scratch: Scratch
    /// U+0600 joins the character after it.
    private static let mark = "P=$'\\xd8\\x80'; A=$'\\xcc\\x81'; unset MOULT_STORE\n"

    init() throws {
        scratch = try Scratch()
        try scratch.must("chmod 755 .; mkdir -m 700 closed")
    }

    private func run(_ script: String) throws -> (status: Int32, out: String, err: String) {
        try scratch.moult(Self.mark + script)
    }

    /// The release has a full-text index whose name contains a quote and further statements.
    @Test func `the name of an index runs no statement in an update, a replacement or a plan`() throws {
        let file = scratch.path("closed/f")
        let made = try run(
            """
            for v in 1 2; do echo 'CREATE TABLE note(id INTEGER PRIMARY KEY, text);' > $v.sql; done
            cat >> 2.sql <<X
            CREATE TABLE "x$P"(a);
            CREATE VIRTUAL TABLE "x$P"" DEFAULT VALUES; ATTACH '\(file)' AS z; CREATE TABLE z.p(a); --" USING fts4(content=note,text);
            X
            for v in 1 2; do
                echo '{"manifest":1,"product":"org.example.p","version":"'$v'.0.0","databases":{"n":{"kind":"shared",
                    "build":{"script":"'$v'.sql"},"preserve":[{"table":"note"}]}}}' > $v.json
                moult pack -q $v.json -o rel
            done
            moult init -q store --product org.example.p; moult apply -q rel/p-1.0.0.json
            sqlite3 store/n.db "INSERT INTO note VALUES(1, 'mine')"
            moult plan -q --deep rel/p-2.0.0.json; moult apply -q rel/p-2.0.0.json
            sqlite3 store/n.db 'SELECT * FROM note'
            moult build -q 2.sql -o new.db; moult build -q 1.sql -o app.db; sqlite3 app.db "INSERT INTO note VALUES(2, 'my own')"
            moult replace -q --dry-run app.db new.db --preserve note; moult replace -q app.db new.db --preserve note
            sqlite3 app.db 'SELECT * FROM note'
            """)
        #expect(made.out == "1|mine\n2|my own\n", "\(made)")
        #expect(try Files.list(scratch.path("closed")) == [])
    }

    /// A damaged database has a table whose name contains a quote and further statements.
    @Test func `the name of a table runs no statement when its rows are salvaged`() throws {
        let made = try run(
            """
            echo 'CREATE TABLE note(id INTEGER PRIMARY KEY, text);' > n.sql
            echo '{"manifest":1,"product":"org.example.n","version":"1.0.0","databases":{"notes":{"kind":"user","build":{"script":"n.sql"}}}}' > d.json
            moult pack -q d.json -o rel && moult apply -q --create --store st rel/*.json
            T="x$P\\"; ATTACH '$PWD/closed/f' AS z; CREATE TABLE z.p AS SELECT 1; --"
            sqlite3 evil.db "CREATE TABLE note(a); PRAGMA writable_schema=1; INSERT INTO sqlite_schema VALUES('table','${T//\\'/\\'\\'}','${T//\\'/\\'\\'}',2,'garbage')"
            cat evil.db > st/notes.db
            moult reset notes --set-user-data-aside -q -s st
            """)
        #expect(made.status == 0, "\(made)")
        #expect(try Files.list(scratch.path("closed")) == [])
    }

    @Test func `the header of a CSV file runs no statement`() throws {
        let made = try run(
            """
            printf '"n%s"" TEXT); UPDATE price SET cents=1; CREATE TABLE hidden(%s""z"\\napple\\n' $P $P > food.csv
            printf "CREATE TABLE price(i,cents);\\nINSERT INTO price VALUES('gold',100000);\\n.import --csv food.csv food\\n" > s.sql
            moult build -q s.sql -o o.db && sqlite3 o.db 'SELECT * FROM price; SELECT name FROM sqlite_schema'
            """)
        #expect(made.out == "gold|100000\nprice\nfood\n", "\(made)")
    }

    @Test func `a trusted store is recognized by the bytes of its path`() throws {
        guard geteuid() == 0 else { return }
        let ended = try run(
            """
            mkdir -p etc/moult srv; chmod 1777 srv; cp /etc/passwd /etc/group /etc/ld.so.cache etc
            G=$PWD/srv/caf$'\\xc3\\xa9'; export B=$PWD/srv/cafe$A; mkdir "$G"; echo "$G" > etc/moult/trusted-stores
            mkdir -m 755 bin; cp $(command -v moult) bin
            S="setpriv --reuid=65534 --regid=65534 --clear-groups"; $S bin/moult init -q "$B" --product org.example.food
            unshare -m sh -c 'mount --bind etc /etc; bin/moult status -q --store "$B"'
            """)
        #expect(ended.status == 3, "\(ended)")
        #expect(ended.err.contains("root does not use the store"), "\(ended)")
    }

    @Test(arguments: ["", "$P"])
    func `a link of another user is found whatever its name is`(_ end: String) throws {
        guard geteuid() == 0 else { return }
        let ended = try run(
            """
            mkdir -m 1777 share; mkdir real closed/out; moult init -q real/app --product org.example.a
            setpriv --reuid=65534 --regid=65534 --clear-groups ln -s $PWD/real share/evil\(end)
            setpriv --reuid=65534 --regid=65534 --clear-groups ln -s $PWD/closed share/w\(end)
            moult status -q -s $PWD/share/evil\(end)/app; echo $?
            moult completions man -q $PWD/share/w\(end)/out; echo $?; ls closed/out
            """)
        #expect(ended.out == "3\n3\n", "\(ended)")
    }

    /// The advised command is run in a shell, in which `moult` does nothing.
    @Test(
        arguments: [
            "x'$A;touch RUN;'$A", "x: moult apply --create RELEASE ;touch RUN; ", "x'$P;touch RUN;$P'",
            "x\u{2019};touch RUN;\u{2019}",
        ], ["C", "C.UTF-8"])
    func `an advised command runs nothing that is in a path`(_ name: String, locale: String) throws {
        let ended = try run(
            """
            sqlite3 f.db 'CREATE TABLE t(a)'; moult pack -q f.db --product org.example.f -o rel
            moult keygen -q --no-password k; moult init -q st --product org.example.f --key k.pub
            cp rel/f-1.0.0.json "rel/\(name).json"
            LC_ALL=\(locale) moult plan -s st "rel/\(name).json" 2>&1 | sed -n 's/.* creates it with: moult/echo/p' > advice
            . ./advice > ran; ls RUN; grep -c '^sign .*rel/x.* --key FILE$' ran
            """)
        let advice = try scratch.must("cat advice")
        #expect(ended.out == "1\n", "\(ended) \(advice)")
    }

    /// Without the mark, SQLite's authorizer sees a URI, which is refused.
    @Test func `a script cannot attach a URI outside its sandbox`() throws {
        let made = try run(
            """
            mkdir script; sqlite3 closed/out.db "CREATE TABLE secret(x); INSERT INTO secret VALUES('outside')"
            for m in '' "$A" "$P"; do
                echo "ATTACH 'file:$m/../$PWD/closed/out.db?vfs=unix' AS o; CREATE TABLE c AS SELECT * FROM o.secret;
                    INSERT INTO o.secret VALUES('WRITTEN');" > script/e.sql
                moult build -q script/e.sql -o e.db 2> /dev/null; echo $?; test ! -e e.db || sqlite3 e.db 'SELECT * FROM c'
            done
            sqlite3 closed/out.db 'SELECT * FROM secret'
            """)
        #expect(made.out == "1\n1\n1\noutside\n", "\(made)")
    }

    /// The repaired target would be the path of another directory.
    @Test func `a link with a target that is not UTF-8 is not followed as a different path`() throws {
        guard geteuid() == 0 else { return }
        let ended = try run(
            """
            moult init -q data --product org.example.a; F=$(printf 'caf\\xe9'); cp -a data "$F"; chown 65534 "$F"; ln -s "$F" link
            moult status -q -s link; echo $?
            """)
        #expect(ended.out == "1\n", "\(ended)")
    }

    @Test(arguments: ["", "$P", "$A"])
    func `a file is replaced whatever character its name ends with`(_ end: String) throws {
        let ended = try run(
            """
            sqlite3 new.db "CREATE TABLE t(x); INSERT INTO t VALUES('new')"
            F="app\(end)"; sqlite3 "$F" "CREATE TABLE t(x); INSERT INTO t VALUES('old')"
            python3 -c "
            import sqlite3, subprocess, sys
            c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t').fetchall()
            subprocess.run(['moult', 'replace', '-q', sys.argv[1], 'new.db'], check=True)" "$F" && sqlite3 "$F" 'SELECT x FROM t'
            ls -A | grep -c journal
            moult replace -q --undo "$F" && sqlite3 "$F" 'SELECT x FROM t'
            """)
        #expect(ended.out == "new\n0\nold\n", "\(ended)")
    }

    @Test func `a slash at the end of a path belongs to no other character`() throws {
        let ended = try run(
            """
            moult init -q "store$P" --product org.example.a; moult init -q store --product org.example.b
            moult status --json -s "store$P/" | grep -o 'org.example.a'
            """)
        #expect(ended.out == "org.example.a\n", "\(ended)")
    }

    @Test func `an advised command has the whole path of a store that ends with a full stop`() throws {
        let ended = try run(
            """
            for s in app app.; do moult init -q $s --product org.example.a; done; moult hold -q -s app. --reason x
            moult status -s app. | sed -n 's/remove the hold with: //p' > advice; . ./advice; moult status --json -s app. | grep -c '"holds":..,'
            """)
        #expect(ended.out == "the hold on every release was removed\n1\n", "\(ended)")
    }

    @Test func `a script deletes no file of the publisher, and writes no temporary file elsewhere`() throws {
        let made = try run(
            """
            mkdir script; : > script/e.db; echo precious > script/e.db-wal
            echo "ATTACH 'e.db' AS e; SELECT * FROM e.sqlite_master;" > script/a.sql; moult build -q script/a.sql -o a.db; cat script/e.db-wal
            echo "PRAGMA temp_store_directory='$PWD/closed';" > script/b.sql; moult build -q script/b.sql -o b.db; echo $?
            """)
        #expect(made.out == "precious\n1\n", "\(made)")
    }

    /// The schema has a trigger in place of a table; without a limit, it never ended.
    @Test func `salvage runs no trigger`() throws {
        let made = try run(
            """
            sqlite3 u.db 'CREATE TABLE note(x)'; moult pack -q u.db --product org.example.x --kind u=user
            moult apply -q --create --store st releases/*.json
            python3 - <<'E'
            import sqlite3
            c = sqlite3.connect('st/u.db')
            c.executescript('create table a(x);create table zz(x);create table b(x);insert into a values(1),(2);pragma writable_schema=1')
            c.execute("update sqlite_master set sql='CREATE TABLE b(x)' where name='a'")
            c.execute("update sqlite_master set sql='CREATE TRIGGER tr AFTER INSERT ON b BEGIN INSERT INTO note VALUES(1); END' where name='zz'")
            c.execute("update sqlite_master set sql='CREATE TABLE IF NOT EXISTS b(x)' where name='b'")
            c.commit()
            E
            moult reset -q --store st u --set-user-data-aside
            for f in st/.moult/quarantine/*/salvaged.db; do sqlite3 "$f" 'SELECT count(*) FROM note'; done
            """)
        #expect(made.out == "0\n", "\(made)")
    }

    @Test func `the value of an option may begin with any character`() throws {
        let ended = try run("moult init -q \"${A}st\" --product org.example.x && moult status -q \"--store=${A}st\"")
        #expect(ended.status == 0, "\(ended)")
    }
}

import MoultBasics
import TestSupport
import Testing

/// `moult diff` and `moult inspect`, run as from a shell.
@Suite struct PublishDiffTests {
    private let scratch: Scratch

    init() throws {
        scratch = try Scratch()
        try scratch.write(
            "old.sql",
            """
            CREATE TABLE food (id INTEGER PRIMARY KEY, name, kcal); CREATE TABLE same (a);
            INSERT INTO food VALUES (1, 'bread', 250), (2, 'milk', 64), (3, 'it''s', NULL);
            """)
        try scratch.write(
            "new.sql",
            """
            PRAGMA user_version = 2; CREATE INDEX i ON food (name);
            DELETE FROM food WHERE id = 3; UPDATE food SET kcal = 251 WHERE id = 1;
            INSERT INTO food VALUES (4, 'tab' || char(9) || 'here', x'0102');
            """)
        let made = try scratch.moult("sqlite3 old.db < old.sql && cp old.db new.db && sqlite3 new.db < new.sql")
        try #require(made.status == 0, "\(made.err)")
    }

    @Test func `diff shows the differences`() throws {
        let run = try scratch.moult("moult diff old.db new.db --rows 1")
        #expect(run.err == "")
        #expect(run.status == 2)
        #expect(
            run.out == """
                old.db -> new.db

                ~ new.db
                  ~ user_version: 0 -> 2
                  + index i added: on "food" ("name")
                  table  rows  now  added  removed  changed  matched by
                  food      3    3      1        1        1  primary key id
                  1 other table without changed rows

                  food
                    + id 4: name 'tab\\there', kcal x'0102'
                    - id 3: name 'it''s', kcal NULL
                    ~ id 1: kcal 250 -> 251

                """)
    }

    @Test func `the exit status of diff shows whether anything differs`() throws {
        #expect(try scratch.moult("moult diff -q old.db new.db") == (2, "", ""))
        #expect(try scratch.moult("cp old.db copy.db; moult diff -q old.db copy.db").status == 0)
        let same = try scratch.moult("sqlite3 copy.db VACUUM; moult diff old.db copy.db")
        #expect(same.status == 0)
        #expect(same.out == "old.db -> copy.db\n\n= copy.db: no difference\n")
        #expect(try scratch.moult("moult diff old.db missing.db").status == 1)
        #expect(try scratch.moult("moult diff").status == 64)
    }

    @Test func `diff --json prints one object`() throws {
        let run = try scratch.moult("moult diff --json old.db new.db")
        let json = try JSON(parsing: run.out, source: "stdout")
        #expect(json["format"] == 1)
        #expect(json["differs"] == true)
        #expect(json["databases"]?.array?.count == 1)
        #expect(run.out.split(separator: "\n").count == 1)
    }

    /// The page contains rows of the databases. Its group may be another one than theirs.
    @Test(arguments: [("644", "022", "644"), ("644", "077", "600"), ("600", "022", "600"), ("640", "022", "600")])
    func `only users who can read both databases can read the page`(mode: String, umask: String, page: String) throws {
        let script =
            "chmod \(mode) new.db; umask \(umask); moult diff -q --html page.html old.db new.db; stat -c %a page.html"
        #expect(try scratch.moult(script).out == "\(page)\n")
        #expect(try scratch.moult("chmod 604 page.html; \(script)").out == "604\n")
    }

    /// A release whose files every user may read has no secrets.
    @Test func `every user can read the page about public releases`() throws {
        try scratch.must(
            """
            cp new.db app.db; moult pack -q app.db --product com.example.a --version 1.0.0 -o pub
            sqlite3 app.db 'CREATE TABLE more(x)'; moult pack -q app.db -o pub
            """)
        let diff = "moult diff -q --html page.html pub/*-1.0.0.json pub/*-1.1.0.json; stat -c %a page.html"
        #expect(try scratch.moult(diff).out == "644\n")
        #expect(try scratch.moult("rm page.html; chmod 600 pub/*-1.1.0.tar.zst; \(diff)").out == "600\n")
    }

    @Test func `a saved plan respects the umask, and keeps its mode if it is replaced`() throws {
        try scratch.must("moult init -q store --product com.example.a")
        try scratch.must("moult pack -q new.db --product com.example.a --version 1.0.0 -o rel")
        let save = "umask 077; moult plan -q -s store --output plan.json rel/*.json; stat -c %a plan.json"
        #expect(try scratch.moult(save).out == "600\n")
        #expect(try scratch.moult("chmod 640 plan.json; \(save)").out == "640\n")
    }

    @Test func `diff --html replaces only a page that diff has written`() throws {
        let run = try scratch.moult("moult diff --html page.html old.db new.db")
        #expect((run.status, run.err) == (2, "moult: the page is in page.html\n"))
        // The page contains the rows, which the text output shows only on request.
        #expect(!run.out.contains("251"))
        #expect(try scratch.moult("grep -c 'del>250<' page.html").out == "1\n")
        #expect(try scratch.moult("moult diff -q --html page.html old.db new.db").status == 2)
        let slip = try scratch.moult("cp new.db kept.db; moult diff --html new.db old.db new.db; cmp new.db kept.db")
        #expect(slip.status == 0)
        #expect(slip.err.contains("cannot save the page to new.db"))
    }

    @Test func `inspect shows the content of a database`() throws {
        let run = try scratch.moult("moult inspect new.db")
        #expect(run.status == 0)
        for line in ["  user_version    2", "  food      3  id, name, kcal", "  same      0  a", "  index i"] {
            #expect(run.out.contains("\(line)\n"), "\(line) in:\n\(run.out)")
        }
        let json = try JSON(parsing: try scratch.moult("moult inspect --json new.db").out, source: "stdout")
        #expect(json["databases"]?.array?.first?["userVersion"] == 2)
        #expect(try scratch.moult("moult inspect missing.db").status == 1)
    }

    @Test func `inspect and diff accept a database by its path in the installed generation`() throws {
        try scratch.must("moult init -q store --product com.example.a")
        try scratch.must("moult pack -q new.db --product com.example.a --version 1.0.0 -o rel")
        try scratch.must("moult apply -q -s store rel/*.json")
        let file = "store/.moult/current/new.db"
        #expect(try scratch.moult("moult inspect \(file)").status == 0)
        #expect(try scratch.moult("moult diff \(file) new.db").status == 0)
    }

    @Test func `inspect and diff accept a store`() throws {
        let made = try scratch.moult(
            """
            set -e
            for n in 1 2; do
            echo "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES ($n);" > make.sql
            cat > draft.json <<END
            { "manifest": 1, "product": "org.example.food", "version": "$n.0.0", "sequence": $n, "databases": {
              "food": { "kind": "reference", "build": { "script": "make.sql" } },
              "user": { "kind": "user", "build": { "script": "make.sql" } } },
              "checks": [{ "on": "food", "sql": "SELECT max(id) FROM t", "expect": ">= 1" }] }
            END
            moult pack draft.json -o releases > /dev/null
            done
            moult init store --product org.example.food
            moult apply releases/food-1.0.0.json
            """)
        try #require(made.status == 0, "\(made.err)")
        let diff = try scratch.moult("moult diff releases/food-2.0.0.json")
        #expect(diff.status == 2)
        #expect(diff.out.hasPrefix("./store (1.0.0) -> releases/food-2.0.0.json (2.0.0)\n"))
        #expect(diff.out.contains("\n  t         1    1      1        1        -  primary key id\n"), "\(diff.out)")
        #expect(diff.out.contains("= user: not compared: the store keeps its own file\n"))
        #expect(try scratch.moult("moult diff store releases/food-1.0.0.json").status == 0)
        #expect(try scratch.moult("moult plan --deep releases/food-1.0.0.json").out.contains("nothing to do"))
        let inspection = try scratch.moult("moult inspect")
        #expect(inspection.status == 0)
        #expect(inspection.out.hasPrefix("org.example.food 1.0.0\n"))
        #expect(inspection.out.contains("food (reference)\n"))
        #expect(
            inspection.out.contains("\n  check     food: SELECT max(id) FROM t returns >= 1\n"), "\(inspection.out)")
        #expect(try scratch.moult("mkdir empty; moult inspect empty").err.contains("is a directory but not a store"))
    }
}

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
}

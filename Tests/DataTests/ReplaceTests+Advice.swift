import MoultBasics
import TestSupport
import Testing

/// Errors of `moult replace` for a user who has only two files.
extension ReplaceTests {
    @Test func `advice after a mistake names the files of the command line`() throws {
        try make("notes.db", "notes")
        try scratch.must("echo hello > text.db; sqlite3 app.db 'CREATE TABLE own(x); INSERT INTO own VALUES(1)'")
        for (line, text) in [
            ("moult replace missing.db new1.db", "cp new1.db missing.db"),
            ("moult replace app.db text.db", "Specify a sound SQLite database as the new file."),
            ("moult replace app.db new1.db --preserve own", "--preserve own: new1.db has no table \"own\""),
        ] {
            let told = try refusal(line)
            #expect(told.contains(text), "\(told)")
        }
        try scratch.must("moult replace app.db new1.db")
        #expect(try refusal("moult replace --undo notes.db").contains("there are old copies of app.db"))
        #expect(try refusal("moult replace --undo missing.db").contains("Specify the file that was replaced."))
    }

    @Test func `names and conditions with a dollar sign are used literally`() throws {
        try scratch.must("cp new1.db 'm${y}.db'; cp new2.db 'm$${y}.db'; cp new3.db 'n${HOME}.db'")
        for (name, word) in [("m$${y}.db", "new2"), ("m${y}.db", "new1"), ("n${HOME}.db", "new3")] {
            try scratch.must("moult replace -q app.db '\(name)' --check \"SELECT '\\${HOME}' = '\\$' || '{HOME}' = 1\"")
            #expect(try content() == "\(word)\n", "\(name)")
        }
    }

    /// SQLite names no column and no schema for a table of which a condition reads no column.
    @Test(arguments: ["id = (SELECT max(id) FROM note)", "(SELECT count(*) FROM t) > 0", "EXISTS (SELECT 1 FROM t)"])
    func `a condition may read a table without naming a column`(condition: String) throws {
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('mine')\"")
        try scratch.must("moult replace -q app.db new1.db --preserve 'note:\(condition)'")
        #expect(try content() == "new1\nmine\n")
    }

    @Test func `a dry run makes the same checks as the replacement`() throws {
        for (check, why) in [
            ("SELECT count(*) FROM t = 100", "new1.db does not pass --check"),
            ("SELECT count(*) FROM none = 1", "no such table"),
        ] {
            for option in ["--dry-run", ""] {
                let told = try refusal("moult replace \(option) app.db new1.db --check '\(check)'")
                #expect(told.contains(why) && told.hasPrefix("moult: error: app.db was not replaced"), "\(told)")
            }
        }
        let line = "moult replace --dry-run app.db new1.db --preserve note --check 'SELECT count(*) FROM t = 1'"
        let before = try Tree(scratch.path, times: false)
        let plan: Shell.Ended = try scratch.run(line)
        #expect(plan.status == 2, "\(plan)")
        #expect(try Tree(scratch.path, times: false) == before)
    }

    /// Some rows do not fit, and some are only in the WAL of a program that was killed.
    @Test(arguments: [
        ("", "", ["3 rows of note carried over"]),
        (
            "", "DROP TABLE note; CREATE TABLE note(id INTEGER PRIMARY KEY, v CHECK(v <> 'b'))",
            ["2 rows of note carried over, 1 row of note not carried over, kept in the old copy"]
        ),
        (
            "ALTER TABLE note ADD COLUMN extra; UPDATE note SET extra = 'x' WHERE id = 2", "",
            [
                "3 rows of note carried over, 1 row of note without the values of columns that the new table lacks, kept whole in the old copy"
            ]
        ),
        ("DELETE FROM note", "", [] as [String]),
    ])
    func `a dry run counts the same rows as the replacement`(_ old: String, _ new: String, _ rows: [String]) throws {
        try scratch.must("sqlite3 new1.db \"\(new)\"")
        try scratch.must(
            """
            python3 -c "
            import os, sqlite3
            c = sqlite3.connect('app.db', isolation_level=None)
            c.executescript('PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0')
            c.executescript(\\\"INSERT INTO note VALUES(1, 'a'), (2, 'b'), (3, 'c'); \(old)\\\")
            os._exit(0)"
            """)
        func counts(_ text: String) -> [String] {
            text.split(separator: "\n").map(String.init).filter { $0.contains(" of note ") }
        }
        let line = "app.db new1.db --preserve note"
        let plan: Shell.Ended = try scratch.run("moult replace --dry-run \(line)")
        let planned = rows.map { $0.replacing("carried over", with: "to carry over") }
        #expect(plan.status == 2 && counts(plan.output) == planned, "\(plan)")
        #expect(try counts(scratch.must("moult replace \(line)")) == rows)
    }

    /// SQLite would use the `-wal` of the old file with the copy.
    @Test func `the advised command for a missing file moves a left WAL away`() throws {
        try scratch.must("moult replace -q app.db new1.db")
        try App.run(
            scratch.path("app.db"), crash: true, "PRAGMA journal_mode = WAL", "INSERT INTO note(v) VALUES('later')")
        try scratch.must("rm app.db app.db-shm")
        let told = try refusal("moult replace --undo app.db")
        #expect(told.contains("only \(scratch.path("app.db-wal")) is left"), "\(told)")
        let advice = try #require(told.split(separator: "To restore its last copy: ").last)
        try scratch.must("\(advice)")
        #expect(try content() == "old\n")
        #expect(try scratch.must("ls").contains("app.db.old-wal"))
    }

    @Test(arguments: ["a\nb.db", "tab\there.db", "it's\u{202E}.db", "c\u{1}1.db"])
    func `advised commands work for names with control characters`(name: String) throws {
        let moult = try Shop.command()
        let bash = { (line: String) in try Shell.run(["bash", "-c", line], in: scratch.path) }
        try Shell.must(["cp", scratch.path("app.db"), scratch.path(name)])
        let done = try Shell.run([moult, "replace", name, "new1.db"], in: scratch.path)
        let advice = try #require(done.output.split(separator: "with: moult ").last, "\(done)")
        #expect(advice.unicodeScalars.allSatisfy { $0.value == 10 || $0.isASCII && $0.value >= 32 }, "\(advice)")
        let undone = try bash("\(shellLine([moult])) \(advice)")
        #expect(undone.status == 0, "\(undone)")
        #expect(try Shell.must(["sqlite3", scratch.path(name), "SELECT x FROM t"]) == "old\n")
    }
}

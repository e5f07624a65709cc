import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// `moult replace`, which needs only the command and two database files.
@Suite(.tags(.slow)) struct ReplaceTests {
    let scratch: Scratch
    init() throws {
        scratch = try Scratch()
        try make("app.db", "old")
        for number in 1...3 { try make("new\(number).db", "new\(number)") }
    }

    func make(_ name: String, _ word: String, _ before: String = "") throws {
        try scratch.must(
            "sqlite3 '\(name)' \"\(before) CREATE TABLE t(x); INSERT INTO t VALUES('\(word)'); CREATE TABLE note(id INTEGER PRIMARY KEY, v);\""
        )
    }

    func content(_ name: String = "app.db") throws -> String {
        try scratch.must("sqlite3 '\(name)' 'SELECT x FROM t ORDER BY x; SELECT v FROM note'")
    }

    func refusal(_ line: String, status: Int32 = 3) throws -> String {
        let before = try Tree(scratch.path, times: false)
        let ended: Shell.Ended = try scratch.run(line)
        #expect(ended.status == status, "\(ended)")
        #expect(try Tree(scratch.path, times: false) == before, "\(line)")
        return ended.errors
    }

    /// Each step is a file to replace with, or an undo and the expected content.
    @Test(arguments: [
        ["new1.db", "undo old", "nothing", "new1.db", "undo old", "nothing"],
        ["new1.db", "new2.db", "undo new1", "undo old", "new2.db", "undo old", "nothing"],
        ["new1.db", "new2.db", "undo new1", "new3.db", "undo new1", "undo old", "nothing"],
    ])
    func `an undo never goes back to a replacement that was already undone`(steps: [String]) throws {
        for step in steps {
            let words = step.split(separator: " ")
            if words[0] == "undo" {
                try scratch.must("moult replace -q --undo app.db")
                #expect(try content() == "\(words[1])\n")
            } else if step == "nothing" {
                #expect(try refusal("moult replace --undo app.db").contains("nothing to undo"))
                let status: Shell.Ended = try scratch.run("moult status -s .app.db.moult")
                #expect(!status.output.contains("--undo"), "\(status)")
            } else {
                try scratch.must("moult replace -q app.db \(step)")
            }
        }
    }

    @Test(arguments: ["app.db", "data", "My app.sqlite3", "ä'$x.db", ".hidden.db"])
    func `an undo restores the exact content of a file with any name`(name: String) throws {
        let word = shellLine([name])
        if name != "app.db" { try scratch.must("mv app.db \(word)") }
        try scratch.must("chmod 640 \(word)")
        let (old, new) = (try scratch.must("sqlite3 \(word) .dump"), try scratch.read("new1.db"))
        let text: String = try scratch.must("moult replace \(word) new1.db")
        #expect(text.contains("moult replace --undo \(word)"))
        #expect(try scratch.must("sqlite3 \(word) 'SELECT x FROM t'") == "new1\n")
        #expect(try scratch.must("stat -c %a \(word)") == "640\n")
        #expect(try scratch.read("new1.db") == new)
        try scratch.must("moult replace --undo \(word)")
        #expect(try scratch.must("sqlite3 \(word) .dump") == old)
        #expect(try scratch.must("stat -c %a \(word)") == "640\n")
    }

    @Test func `each undo goes back one replacement and loses no rows`() throws {
        for number in 1...3 {
            try scratch.must("moult replace app.db new\(number).db")
            try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('mine\(number)')\"")
        }
        for word in ["new2\nmine2\n", "new1\nmine1\n", "old\n"] {
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == word)
        }
        #expect(try refusal("moult replace --undo app.db").contains("nothing to undo"))
        // The content that the undo replaced is in quarantine.
        let sets = try JSON(parsing: scratch.must("moult quarantine --json -s .app.db.moult"), source: "quarantine")
        #expect(sets["quarantine"]?.array?.count == 3, "\(sets)")
        #expect(sets["quarantine"]?.array?.allSatisfy { $0["reason"]?.string == "rolled-back" } == true, "\(sets)")
        // Each set has one file and its record.
        #expect(try scratch.must("ls .app.db.moult/.moult/quarantine/*/* | wc -l") == "6\n")
        try scratch.must("moult quarantine -s .app.db.moult --restore database")
        #expect(try content().hasPrefix("new1\nmine1"))
        // An undo also works if the record of the last replacement is lost.
        try scratch.must("rm .app.db.moult/.moult/feed/seen.json")
        // The next undo goes back one more replacement.
        try scratch.must("moult replace app.db new3.db")
        #expect(try content() == "new3\n")
        try scratch.must("moult replace --undo app.db")
        #expect(try content().hasPrefix("new1\nmine1"))
        // An undo also works if the file was removed.
        try scratch.must("moult replace app.db new2.db && rm app.db")
        for line in ["moult replace app.db new3.db", "moult replace --undo app.db"] {
            let advice = try #require(refusal(line).split(separator: ": ").last)
            try scratch.must("\(advice)")
            #expect(try content().hasPrefix("new1\nmine1"))
            try scratch.must("rm app.db")
        }
    }

    @Test func `--preserve carries over the named rows`() throws {
        try scratch.must(
            "sqlite3 app.db \"INSERT INTO note VALUES(1, 'mine'), (2, 'other'); INSERT INTO t VALUES('x')\"")
        let text = try scratch.must("moult replace app.db new1.db --preserve \"note:v = 'mine'\"")
        #expect(text.contains("1 row of note carried over"))
        #expect(try content() == "new1\nmine\n")
        #expect(
            try refusal("moult replace app.db new2.db --preserve nothing").contains("app.db has no table \"nothing\""))
        try scratch.must("sqlite3 new2.db 'ALTER TABLE note ADD COLUMN own DEFAULT 1; CREATE TABLE notes(x)'")
        for (option, why) in [
            ("notes", "app.db has no table \"notes\""), ("note:own = 1", "no such column: own"),
            ("note:mine(1)", "no such function: mine"), ("note:((", "does not close a parenthesis"),
        ] {
            for line in ["moult replace", "moult replace --dry-run"] {
                #expect(try refusal("\(line) app.db new2.db --preserve '\(option)'").contains(why))
            }
        }
    }

    @Test func `replace refuses a new database that is damaged or fails a check`() throws {
        try scratch.must("head -c 6000 new1.db > cut.db; echo text > text.db")
        try scratch.must(
            "cp new1.db damaged.db; printf '\\377' | dd of=damaged.db bs=1 seek=4096 conv=notrunc status=none")
        for (line, why) in [
            ("moult replace app.db cut.db", "malformed"),
            ("moult replace app.db text.db", "is not a SQLite database"),
            ("moult replace app.db damaged.db", "damaged.db is damaged"),
            ("moult replace app.db new1.db --check 'SELECT count(*) FROM t=2'", "returns 1, expected = 2"),
            ("moult replace app.db new1.db --check 'SELECT count(*) FROM t>=2'", "returns 1, expected >= 2"),
            ("moult replace app.db new1.db --check 'SELECT 1 FROM nothing=1'", "syntax error"),
            ("moult replace app.db missing.db", "missing.db does not exist"),
        ] {
            let text = try refusal(line)
            #expect(text.contains(why) && !text.contains("draft") && !text.contains("release"), "\(text)")
        }
        try scratch.must(
            "moult replace app.db new1.db --check 'SELECT count(*) FROM t=1' --check 'SELECT x FROM t!=old'")
    }

    /// The copy is complete, but `--undo` does not restore a file that is not a database.
    @Test func `if the old file is not a database, replace suggests a copy instead of an undo`() throws {
        try scratch.must("echo hello > text.db; cp text.db before")
        let text: String = try scratch.must("moult replace text.db new1.db")
        #expect(!text.contains("moult replace --undo"))
        let lines = text.split(separator: "\n").map(String.init)
        #expect(
            lines.dropLast().last == "the old text.db was not a valid database, so --undo cannot restore it", "\(text)")
        let command = try #require(
            lines.last?.firstRange(of: "copy it with: ").map { String(lines[lines.count - 1][$0.upperBound...]) })
        try scratch.must("\(command) && cmp text.db.old before")
        let again: String = try scratch.must("echo hello > other.db; moult replace other.db new1.db --json")
        #expect(again.contains("\"copy\":\"") && !again.contains("\"undo\""), "\(again)")
    }

    @Test func `a file that cannot be replaced is refused, and the suggested command works`() throws {
        try scratch.must("ln -s app.db link.db; ln app.db other.db; mkdir directory; mkfifo pipe")
        for (line, why) in [
            ("moult replace missing.db new1.db", "no such file"),
            ("moult replace link.db new1.db", "it is a symbolic link to app.db"),
            ("moult replace app.db app.db", "app.db is the same file"),
            ("moult replace app.db other.db", "other.db is the same file"),
            ("moult replace directory new1.db", "it is not a regular file"),
            ("moult replace pipe new1.db", "it is not a regular file"),
            ("moult replace --undo app.db", "nothing to undo for app.db"),
        ] {
            #expect(try refusal(line).contains(why), "\(line)")
        }
        for line in [
            "moult replace app.db", "moult replace missing.db", "moult replace --undo app.db new1.db",
            "moult replace app.db new1.db --check 'SELECT 1'",
        ] {
            _ = try refusal(line, status: 64)
        }
        #expect(try refusal("moult replace app.db new1.db").contains("has more than one hard link"))
        try scratch.must("rm other.db && moult replace app.db new1.db")
        #expect(try content() == "new1\n")
    }

    @Test func `a database that belongs to a store is refused`() throws {
        let release = try ReleaseMaker(in: scratch.path("rel")).make(
            "1.0.0", sequence: 1,
            [.shared("pantry", "CREATE TABLE t(x); CREATE TABLE note(id INTEGER PRIMARY KEY, v)", more: [])]
        )
        try scratch.must("moult init store --product org.example.test && moult apply -s store \(release)")
        for name in ["pantry.db", ".moult/current/pantry.db", "moult.json"] {
            let text = try refusal("moult replace store/\(name) new1.db")
            #expect(
                text.contains("moult apply RELEASE --store \(try Files.resolved(scratch.path("store")))"), "\(text)")
        }
    }

    @Test func `two databases in one directory are replaced independently`() throws {
        try make("b.db", "b")
        try scratch.must("moult replace app.db new1.db && moult replace b.db new2.db && moult replace --undo app.db")
        #expect(try content() == "old\n" && content("b.db") == "new2\n")
        #expect(try scratch.must("ls -A").split(separator: "\n").count { $0.hasSuffix(".moult") } == 2)
        #expect(try scratch.must("stat -c %a .app.db.moult .b.db.moult") == "700\n700\n")
    }

    /// Each program keeps its connection open, and reads and writes with it after the replacement.
    @Test(arguments: ["delete", "wal"], ["", "PRAGMA page_size = 8192; VACUUM;", "PRAGMA encoding = 'UTF-16le';"])
    func `programs that have the file open continue with the new content`(mode: String, difference: String) throws {
        try scratch.must("rm new1.db")
        try make("new1.db", "new1", difference)
        try scratch.must("sqlite3 app.db \"PRAGMA journal_mode = \(mode)\" > /dev/null")
        let program = try Program([
            "python3", "-u", "-c",
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
            c.execute("INSERT INTO note(v) VALUES('unsaved')")
            print("ready")
            sys.stdin.readline()
            print(c.execute("SELECT x FROM t").fetchall())
            c.execute("INSERT INTO note(v) VALUES('later')")
            print("done")
            sys.stdin.readline()
            """, scratch.path("app.db"),
        ])
        #expect(program.line() == "ready")
        let ended: Shell.Ended = try scratch.run("moult replace app.db new1.db")
        // Open connections would keep the old encoding.
        #expect(ended.status == (difference.contains("encoding") ? 3 : 0), "\(ended)")
        program.write("go\n")
        #expect(program.line() == (ended.status == 0 ? "[('new1',)]" : "[('old',)]"))
        #expect(program.line() == "done")
        program.write("go\n")
        program.wait()
        if ended.status != 0 {
            #expect(try content() == "old\nunsaved\nlater\n")
            // The suggested command converts the new database.
            let command = try #require(ended.errors.firstRange(of: "(echo ")).lowerBound
            let line = ended.errors[command...].replacing("NEW.db", with: "new1.db").replacing(
                "CONVERTED.db", with: "new2.db")
            try scratch.must("rm new2.db; \(line)")
            try scratch.must("moult replace app.db new2.db")
            #expect(try content() == "new1\n")
        } else {
            #expect(try content() == "new1\nlater\n")
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == "old\nunsaved\n")
        }
    }

    @Test func `replace prints its result as JSON`() throws {
        let json = try JSON(parsing: scratch.must("moult replace --json app.db new1.db"), source: "replace")
        #expect(json["undo"]?.array?.compactMap(\.string) == ["moult", "replace", "--undo", "app.db"])
        #expect(json["copies"] == 1 && json["content"] == "new1.db")
        #expect(try JSON(parsing: scratch.must("moult replace --json --undo app.db"), source: "replace")["undo"] == nil)
    }

    /// Programs open the file one after the other for a moment, so the file is never unused for long, and the error
    /// could not name one process.
    @Test func `programs that open the file briefly do not prevent a replacement or an undo`() throws {
        let line =
            "i=0; while test -e go; do i=$((i+1)); sqlite3 -cmd '.timeout 20000' app.db 'INSERT INTO note(v) VALUES(1)' || echo failed; done; echo $i"
        try scratch.must("touch go")
        let programs = try Program(["sh", "-c", "cd \(scratch.path) && \(line)"])
        for number in 1...3 {
            let new: Shell.Ended = try scratch.run("moult replace app.db new\(number).db --preserve note")
            #expect(new.status == 0, "\(new)")
            let old: Shell.Ended = try scratch.run("moult replace --undo app.db")
            #expect(old.status == 0, "\(old)")
        }
        try Files.remove(scratch.path("go"))
        // No program has reported an error.
        let count = try #require(programs.line())
        #expect(Int(count) ?? 0 > 10, "\(count)")
        #expect(try content().hasPrefix("old\n"))
        #expect(try scratch.must("sqlite3 app.db 'PRAGMA integrity_check'") == "ok\n")
    }

    @Test func `a dry run and an undo of replace show files and times, not releases`() throws {
        try scratch.must("sqlite3 app.db \"ALTER TABLE note ADD COLUMN extra; INSERT INTO note VALUES (1, 'a', 'b')\"")
        let plan: Shell.Ended = try scratch.run("moult replace --dry-run app.db new1.db --preserve note")
        #expect(plan.output.contains("app.db gets the content of new1.db, "), "\(plan)")
        #expect(plan.output.contains("a complete copy of the old content is kept\n"), "\(plan)")
        let text = try scratch.must("moult replace app.db new1.db --preserve note")
        #expect(
            text.contains(
                "1 row of note carried over, 1 row of note without the values of columns that the new table lacks, kept whole in the old copy\n"
            ),
            "\(text)")
        let time = try #require(
            JSON(parsing: scratch.must("moult replace --undo app.db --json"), source: "undo")["time"]?.string)
        #expect(try #require(Timestamp(time)).seconds > Timestamp.now.seconds - 60)
        try scratch.must("moult replace app.db new2.db && sqlite3 app.db \"INSERT INTO note VALUES (7, 'mine')\"")
        let undo: Shell.Ended = try scratch.run("moult replace --undo --dry-run app.db")
        #expect(undo.output.contains("app.db is restored to its state at 20"), "\(undo)")
        #expect(undo.output.contains("changes made since then go to quarantine\n"), "\(undo)")
        for shown in [plan.output, undo.output] {
            for word in ["release", "delete", "generation", "1.0.0"] { #expect(!shown.contains(word), "\(shown)") }
        }
        let done = try scratch.must("moult replace --undo app.db")
        #expect(done.hasPrefix("✓ app.db is restored to its state at 20"), "\(done)")
    }

    @Test func `status and history of a replaced file show the file and times`() throws {
        try scratch.must("moult replace app.db new1.db && moult replace app.db new2.db")
        let replaced = try scratch.must("moult status -s .app.db.moult; moult history -s .app.db.moult")
        #expect(replaced.hasPrefix("app.db: replaced at 20"))
        #expect(replaced.contains("  content  sound on 20"), "\(replaced)")
        #expect(replaced.contains("replacement of app.db done in "))
        #expect(replaced.contains("\nOld copies, each from before a replacement:\n  20"))
        let undo = try #require(
            replaced.split(separator: "restore the newest with: ").last?.split(separator: "\n").first)
        try scratch.must("\(undo)")
        #expect(try content() == "new1\n")
        try scratch.must("moult replace --undo app.db")
        let undone = try scratch.must("moult status -s .app.db.moult; moult history -s .app.db.moult")
        #expect(
            undone.hasPrefix("app.db: as it was at 20") && undone.contains("\nno older copy is kept\n"), "\(undone)")
        #expect(undone.contains("undo of the replacement of app.db done in "))
        let line = try scratch.must("moult status --nagios -s .app.db.moult")
        #expect(line.hasPrefix("MOULT OK - app.db |"), "\(line)")
        let words = ["local.replace", "release", "generation", "rollback", "update", "1.0.0", "adopted"]
        for text in [replaced, undone] {
            for word in words { #expect(!text.contains(word), "\(word) in \(text)") }
        }
    }

    @Test func `errors of replace and verify name files, not releases`() throws {
        try scratch.must("moult replace -q app.db new1.db")
        _ = try scratch.must("! moult replace app.db new1.db --check 'SELECT 1=2'")
        let history: String = try scratch.must("moult history -v -s .app.db.moult")
        #expect(
            history.contains("the new database does not pass --check: SELECT 1 returns 1, expected = 2"), "\(history)")
        #expect(history.contains("Correct the new database, or the options of `moult replace`."), "\(history)")
        #expect(!history.contains("golden") && !history.contains("release"), "\(history)")
        try scratch.must("head -c 5000 /dev/urandom > app.db")
        let status: String = try scratch.run("moult status -s .app.db.moult").output
        let remedy = "set app.db aside and start with the content of the last replacement or undo: "
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(remedy) }, "\(status)")
        // After this command, the undo works.
        try scratch.must(
            "! moult replace --undo app.db && \(line.dropFirst(remedy.count)) && moult replace --undo app.db")
        #expect(try content() == "old\n")
    }

    @Test func `a file with a table that has a reserved name is refused`() throws {
        for (number, sql) in [
            "CREATE TABLE moult_release(a)", "CREATE VIEW Moult_Release AS SELECT 1",
            "CREATE TABLE moult_rejected(a, b)",
        ].enumerated() {
            try scratch.must("sqlite3 own\(number).db \"\(sql)\"")
            let text = try refusal("moult replace app.db own\(number).db")
            #expect(text.contains("own\(number).db has a "), "\(text)")
            #expect(text.contains("Rename the table or view."), "\(text)")
            #expect(!text.contains("SQLITE"), "\(text)")
        }
        // A database that `moult replace` has changed may be the new file of another replacement.
        try scratch.must("moult replace app.db new1.db && cp app.db copy.db && moult replace new2.db copy.db")
        #expect(try content("new2.db") == "new1\n")
    }

    @Test func `replace does not touch files with similar names`() throws {
        let names = ["app.db.new", "app.db.own", "app.db.old", "app.patch.new", "page.html.new", "moult.json.new"]
        for name in names { try scratch.must("echo '\(name)' > \(name)") }
        try scratch.must("moult replace app.db new1.db && moult replace --undo app.db")
        try scratch.must("moult delta new1.db new2.db -o app.patch")
        try scratch.must("moult diff new1.db new2.db --html page.html", status: 2)
        try scratch.must("moult init -q . --product local.names")
        for name in names { #expect(try scratch.must("cat \(name)") == "\(name)\n") }
    }

    @Test
    func `the suggested commands for a file with several hard links work in a directory with a quote in its name`()
        throws
    {
        try scratch.must("mkdir \"it's\" && mv app.db new1.db \"it's\" && ln \"it's/app.db\" other.db")
        let text = try scratch.run("moult replace \"it's/app.db\" \"it's/new1.db\"").errors
        try scratch.must(String(#require(text.split(separator: "of its own: ").last)))
        #expect(try scratch.must("stat -c %h other.db \"it's/app.db\"") == "1\n1\n")
        #expect(try scratch.must("sqlite3 \"it's/app.db\" 'SELECT x FROM t'") == "old\n")
    }
}

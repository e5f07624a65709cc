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
                let status: Shell.Ended = try scratch.run("moult status app.db")
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
        // The content that each undo replaced is kept, too. A set has one file and its record.
        let sets = try JSON(parsing: scratch.must("moult quarantine --json app.db"), source: "quarantine")[
            "quarantine"]?.array
        let reasons = sets?.map { $0["reason"]?.string }
        #expect(
            reasons == Array(repeating: "replaced", count: 3) + Array(repeating: "undone", count: 3), "\(reasons ?? [])"
        )
        #expect(try scratch.must("ls .app.db.moult/*/* | wc -l") == "12\n")
        try scratch.must("moult quarantine app.db 0005-undone --restore")
        #expect(try content() == "new2\nmine2\n")
        // The next undo goes back one more replacement.
        try scratch.must("moult replace --yes app.db new3.db")
        #expect(try content() == "new3\n")
        for word in ["new2\nmine2\n", "old\n"] {
            try scratch.must("moult replace --undo app.db")
            #expect(try content() == word)
        }
        // If the file was removed, the error has the command that copies the last one.
        try scratch.must("moult replace --yes app.db new2.db && rm app.db")
        for line in ["moult replace app.db new3.db", "moult replace --undo app.db"] {
            let advice = try #require(refusal(line).split(separator: ": ").last)
            try scratch.must("\(advice)")
            #expect(try content() == "old\n")
            try scratch.must("rm app.db")
        }
    }

    @Test func `the same content is kept once`() throws {
        for _ in 1...3 {
            try scratch.must("moult replace -q --yes app.db new1.db && moult replace -q --undo app.db")
            #expect(try content() == "old\n")
        }
        // Each undo has a set of its own, which shares the file.
        #expect(try scratch.must("ls .app.db.moult | wc -l") == "6\n")
        #expect(try scratch.must("ls -i .app.db.moult/*/app.db | cut -d. -f1 | sort -u | wc -l") == "2\n")
        try scratch.must("moult replace -q --yes app.db new1.db")
        let again = try scratch.must("moult replace app.db new1.db")
        #expect(again == "= app.db already has the content of new1.db: nothing was changed\n")
        #expect(try scratch.must("ls .app.db.moult | wc -l") == "7\n")
    }

    @Test(arguments: ["delete", "wal"]) func `after a replacement the file equals the new one, table for table`(
        mode: String
    ) throws {
        try scratch.must("sqlite3 app.db 'PRAGMA journal_mode = \(mode)' > mode")
        try scratch.must(
            "sqlite3 new1.db 'CREATE TABLE moult_release(a, b); INSERT INTO moult_release VALUES(1, 2); CREATE TABLE moult_rejected(own)'"
        )
        let before = try scratch.must("stat -c '%i %u %a' app.db")
        try scratch.must("moult replace app.db new1.db --preserve note")
        #expect(try scratch.must("sqlite3 app.db .dump") == scratch.must("sqlite3 new1.db .dump"))
        #expect(try scratch.must("sqlite3 app.db 'PRAGMA journal_mode'") == "\(mode)\n")
        #expect(try scratch.must("stat -c '%i %u %a' app.db") == before)
    }

    @Test func `a file of 0 bytes comes back from an undo with 0 bytes`() throws {
        try scratch.must(": > empty.db; moult replace empty.db new1.db")
        #expect(try content("empty.db") == "new1\n")
        try scratch.must("moult replace --undo empty.db")
        #expect(try scratch.must("stat -c %s empty.db") == "0\n")
        try scratch.must("moult quarantine empty.db 0002-undone --restore")
        #expect(try content("empty.db") == "new1\n")
    }

    /// These rows belong to the users of another file.
    @Test func `a new file with rows in moult_rejected is refused, and the suggested command removes them`() throws {
        try scratch.must(
            "sqlite3 new1.db 'CREATE TABLE moult_rejected(release, \"table\", reason, row); INSERT INTO moult_rejected VALUES(1, 2, 3, 4)'"
        )
        for line in ["moult replace app.db new1.db", "moult replace --dry-run app.db new1.db"] {
            let text = try refusal(line)
            #expect(text.contains("new1.db has 1 row of other users in the table moult_rejected"), "\(text)")
        }
        let pack: Shell.Ended = try scratch.run(
            "moult pack new1.db --product org.example.test --version 1.0.0 -o out")
        #expect(pack.status == 3 && pack.errors.contains("1 row in the table moult_rejected"), "\(pack)")
        let command = try #require(pack.errors.split(separator: "Remove them with: ").last)
        try scratch.must("\(command)")
        try scratch.must("moult replace app.db new1.db")
        #expect(try content() == "new1\n")
    }

    @Test func `if the arguments seem to be swapped, replace is refused without a terminal`() throws {
        let holder = try App(opens: scratch.path("new1.db"), "SELECT * FROM t")
        let open = try refusal("moult replace app.db new1.db")
        #expect(open.contains("a program has new1.db open, and none has app.db open"), "\(open)")
        holder.quit()
        try scratch.must("moult replace app.db new1.db")
        let replaced = try refusal("moult replace new2.db app.db")
        #expect(replaced.contains("app.db itself was replaced before"), "\(replaced)")
        try scratch.must(
            "cp app.db older.db; touch -d '2 days ago' older.db; sqlite3 app.db \"INSERT INTO note(v) VALUES('mine')\"")
        let older = try refusal("moult replace app.db older.db")
        #expect(older.contains("older.db is older than app.db, and app.db has all its rows"), "\(older)")
        let advice = try #require(older.split(separator: "If the order is right, run: ").last)
        try scratch.must("\(advice)")
        #expect(try content() == "new1\n")
    }

    @Test(.enabled(if: geteuid() == 0, "mounts a file system")) func `a full disk is refused before anything changes`()
        throws
    {
        try scratch.must("mkdir disk && mount -t tmpfs -o size=700k tmpfs disk && cp app.db disk")
        defer { _ = try? scratch.run("umount disk") as Shell.Ended }
        for number in 1...3 {
            try scratch.must("sqlite3 new\(number).db 'CREATE TABLE large AS SELECT randomblob(60000)'")
        }
        var statuses: Set<Int32> = []
        for number in 1...9 {
            let ended: Shell.Ended = try scratch.run("moult replace --yes disk/app.db new\(number % 3 + 1).db")
            statuses.insert(ended.status)
            #expect([0, 3].contains(ended.status), "\(ended)")
            if ended.status == 3 {
                #expect(ended.errors.contains("not enough space for replacing disk/app.db"), "\(ended)")
                #expect(!ended.errors.contains("work."), "\(ended)")
            }
        }
        #expect(statuses == [0, 3])
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

    @Test(arguments: ["printf hello > app.db", "head -c 8192 /dev/urandom > app.db", "echo > app.db"])
    func `a file that is not a database is refused`(line: String) throws {
        try scratch.must(line)
        let text = try refusal("moult replace app.db new1.db")
        #expect(text.contains("SQLite cannot open it: "), "\(text)")
    }

    @Test func `a damaged database is replaced, and an undo restores it as it was`() throws {
        try scratch.must(
            "sqlite3 app.db \"CREATE TABLE large AS SELECT hex(randomblob(30000))\"; printf '%600s' x | dd of=app.db bs=1 seek=30000 conv=notrunc status=none; cp app.db before"
        )
        try scratch.must("moult replace app.db new1.db")
        #expect(try content() == "new1\n")
        try scratch.must("moult replace --undo app.db")
        // The header has the number of commits.
        #expect(try scratch.must("tail -c +101 app.db | sha256sum") == scratch.must("tail -c +101 before | sha256sum"))
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

    @Test func `status, verify, quarantine and reset take a replaced file`() throws {
        try scratch.must("moult replace app.db new1.db && moult replace app.db new2.db")
        let status = try scratch.must("moult status app.db")
        #expect(status.hasPrefix("app.db: opens\n") && status.contains("0002-replaced  20"), "\(status)")
        let checks = try scratch.must("moult verify --deep app.db")
        let sound = "integrity_check  sound\n"
        #expect(checks.hasPrefix("✓ app.db         \(sound)✓ 0001-replaced  \(sound)"), "\(checks)")
        let undo = try #require(status.split(separator: "with: ").last)
        try scratch.must("\(undo)")
        #expect(try content() == "new1\n")
        try scratch.must("moult quarantine app.db 3 --export later.db")
        #expect(try content("later.db") == "new2\n")
        #expect(
            try refusal("moult quarantine app.db 9 --export x.db").contains("no old content of app.db is named \"9\""))
        try scratch.must("head -c 5000 /dev/zero | dd of=app.db bs=1 seek=100 conv=notrunc status=none")
        let damaged = try scratch.must("moult status app.db")
        let remedy = try #require(
            damaged.split(separator: "before the last replacement: ").last?.split(separator: "\n").first)
        #expect(try scratch.run("moult verify app.db").status == 1)
        try scratch.must("\(remedy)")
        #expect(try content() == "old\n")
        #expect(try refusal("moult replace --undo app.db").contains("it already has its old content"))
        try scratch.must("moult quarantine app.db 4 --remove && moult quarantine app.db --remove --older-than 0")
        #expect(try scratch.must("ls .app.db.moult | wc -l") == "3\n")
        try scratch.must("moult quarantine app.db --remove --older-than 0 --user-data")
        #expect(try !scratch.must("ls -A").contains(".app.db.moult"))
        #expect(try scratch.run("moult status app.db").status == 3)
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

import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// Rows of an app that `moult replace` rejects, sets aside or restores.
extension ReplaceTests {
    /// The new file rejects a row of the old one, and a table of moult records it.
    @Test func `an undo restores a file without the records of rows that the new file rejected`() throws {
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('mine'), ('too long')\"")
        let old = try scratch.must("sqlite3 app.db .dump")
        try scratch.must(
            "rm new1.db; sqlite3 new1.db 'CREATE TABLE t(x); CREATE TABLE note(id INTEGER PRIMARY KEY, v CHECK(length(v) < 5))'"
        )
        try scratch.must("moult replace app.db new1.db --preserve note")
        #expect(try scratch.must("sqlite3 app.db 'SELECT count(*) FROM moult_rejected'") == "1\n")
        try scratch.must("moult replace --undo app.db")
        #expect(try scratch.must("sqlite3 app.db .dump") == old)
    }

    @Test func `rows of the old file are restored from quarantine after an undo`() throws {
        try scratch.must(
            "sqlite3 app.db \"INSERT INTO note(v) VALUES('mine')\" && moult replace app.db new1.db --preserve note")
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('later')\" && moult replace --undo app.db")
        try scratch.must("sqlite3 app.db 'DELETE FROM note'")
        try scratch.must("moult quarantine -s .app.db.moult --restore database --table note")
        #expect(try scratch.must("sqlite3 app.db 'SELECT v FROM note ORDER BY v'") == "later\nmine\n")
    }

    /// A set in quarantine has files of moult, too.
    @Test(arguments: ["set.json", "salvaged.db", "salvaged.json"])
    func `a file with the name of a file in quarantine is replaced and restored`(name: String) throws {
        try scratch.must("mv app.db \(name); moult replace \(name) new1.db")
        try scratch.must("sqlite3 \(name) \"INSERT INTO note(v) VALUES('later')\"; moult replace --undo \(name)")
        try scratch.must("moult quarantine -s .\(name).moult --export out.db database")
        #expect(try content("out.db") == "new1\nlater\n")
        #expect(try content(name) == "old\n")
    }

    /// A program has the file open, and the command is killed after it has replaced the content.
    @Test(.tags(.thorough), arguments: ["mv", "cp"], ["replace app.db new1.db", "recover --undo -s .app.db.moult"])
    func `the old content stays if a backup is put in place after a kill`(tool: String, next: String) throws {
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('PRECIOUS')\"; cp app.db backup.db")
        try scratch.must("sqlite3 backup.db \"DELETE FROM note; INSERT INTO note(v) VALUES('BACKUP')\"")
        let read =
            "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t').fetchall(); "
        for call in 5...20 {
            let place = try scratch.directory("\(call)")
            try scratch.must("cp app.db new1.db backup.db \(call)")
            let holder = try Background([
                "python3", "-c", read + "print(1, flush=True); time.sleep(600)", "\(place)/app.db",
            ])
            defer { holder.signal(SIGKILL) }
            try holder.wait { try OpenFiles.holders(of: ["\(place)/app.db"]).isEmpty == false }
            let kill = "inject=renameat2:signal=SIGKILL:when=\(call)"
            let ended: Shell.Ended = try scratch.run(
                "cd \(call); strace -f -qq -o /dev/null -e trace=renameat2 -e \(kill) moult replace app.db new1.db")
            holder.signal(SIGKILL)
            try #require(ended.status != 0, "no call replaced the content")
            guard try content("\(call)/app.db") == "new1\n" else { continue }
            try scratch.must("cd \(call); \(tool) backup.db app.db; moult \(next)")
            let found: Shell.Ended = try scratch.run("grep -rqaF PRECIOUS \(call)")
            #expect(found.status == 0, "call \(call)")
            return
        }
        Issue.record("no call replaced the content")
    }

    @Test func `an undo is refused if the app has its own table moult_rejected`() throws {
        try scratch.must("moult replace app.db new1.db")
        try scratch.must(
            "sqlite3 app.db \"CREATE TABLE moult_rejected(mine); INSERT INTO moult_rejected VALUES('KEEP')\"")
        let ended: Shell.Ended = try scratch.run("moult replace --undo app.db")
        #expect(ended.status == 3 && ended.errors.contains("does not belong to moult"), "\(ended)")
        #expect(try scratch.must("sqlite3 app.db 'SELECT mine FROM moult_rejected'") == "KEEP\n")
    }
}

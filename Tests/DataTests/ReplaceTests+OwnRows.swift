import TestSupport
import Testing

/// Rows of an app that `moult replace` rejects, sets aside or restores.
extension ReplaceTests {
    @Test func `a row that the new file rejects stays in the old copy, and an undo restores it`() throws {
        try scratch.must("sqlite3 app.db \"INSERT INTO note(v) VALUES('mine'), ('too long')\"")
        let old = try scratch.must("sqlite3 app.db .dump")
        try scratch.must(
            "rm new1.db; sqlite3 new1.db 'CREATE TABLE t(x); CREATE TABLE note(id INTEGER PRIMARY KEY, v CHECK(length(v) < 5))'"
        )
        let text = try scratch.must("moult replace app.db new1.db --preserve note")
        #expect(text.contains("1 row of note carried over, 1 row of note not carried over, kept in the old copy\n"), "\(text)")
        #expect(try scratch.must("sqlite3 app.db .tables").split(separator: " ").count == 2)
        try scratch.must("moult replace --undo app.db")
        #expect(try scratch.must("sqlite3 app.db .dump") == old)
    }

    @Test func `a row of the new file that a carried row replaces is counted`() throws {
        try scratch.must(
            "sqlite3 app.db \"INSERT INTO note VALUES(1, 'mine')\"; sqlite3 new1.db \"INSERT INTO note VALUES(1, 'shipped')\"")
        let text = try scratch.must("moult replace app.db new1.db --preserve note")
        #expect(text.contains("1 row of note in new1.db replaced by rows of app.db\n"), "\(text)")
        #expect(try content() == "new1\nmine\n")
        #expect(try scratch.must("sqlite3 app.db .tables").split(separator: " ").count == 2)
    }

    /// A set in quarantine has files of moult, too.
    @Test(arguments: ["set.json", "salvaged.db", "salvaged.json"])
    func `a file with the name of a file in quarantine is replaced and restored`(name: String) throws {
        try scratch.must("mv app.db \(name); moult replace \(name) new1.db")
        try scratch.must("sqlite3 \(name) \"INSERT INTO note(v) VALUES('later')\"; moult replace --undo \(name)")
        try scratch.must("moult quarantine \(name) 0002-undone --export out.db")
        #expect(try content("out.db") == "new1\nlater\n")
        #expect(try content(name) == "old\n")
    }
}

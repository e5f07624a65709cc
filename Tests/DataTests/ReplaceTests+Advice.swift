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
        let plan: Shell.Ended = try scratch.run("moult replace text.db new1.db --dry-run")
        #expect(plan.output.contains("text.db is not a valid database, so --undo cannot restore it"), "\(plan)")
        let status: Shell.Ended = try scratch.run("moult replace app.db new1.db && moult status app.db")
        let line = try #require(status.errors.split(separator: "\n").first)
        let store = try #require(
            line.firstRange(of: "; to specify that store, write ").map { line[$0.upperBound...] }, "\(status)")
        #expect(store.hasSuffix("/.app.db.moult"))
        try scratch.must("moult status \(store)")
        #expect(try refusal("moult replace --undo notes.db").contains("there are old copies of app.db"))
    }
}

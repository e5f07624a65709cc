import MoultSQLite
import TestSupport
import Testing

@testable import MoultEngine

/// Draining a database that an app writes at that moment.
@Suite struct DrainedFileTests {
    /// In rollback mode, the app's commit waits until no other connection reads. A connection that keeps its read lock while it
    /// waits for the app makes the commit fail.
    @Test func `draining waits for a transaction, and does not block its commit`() throws {
        let scratch = try TestSupport.Scratch()
        let path = scratch.path("note.db")
        try Shell.must(["sqlite3", path, "CREATE TABLE note(x)"])
        let app = try Program.python(
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], timeout=3, isolation_level=None)
            c.execute("BEGIN IMMEDIATE"); c.execute("INSERT INTO note VALUES(1)"); print("writing")
            time.sleep(0.3); c.execute("COMMIT"); print("committed"); c.close()
            """, path)
        #expect(app.line() == "writing")
        let file = DrainedFile(path)
        try file.hold()
        #expect(app.line() == "committed")
        file.release()
        #expect(try Shell.must(["sqlite3", path, "SELECT count(*) FROM note"]) == "1\n")
        #expect(app.wait() == 0)
    }
}

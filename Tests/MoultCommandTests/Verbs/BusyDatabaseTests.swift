import TestSupport
import Testing

/// Publishers' verbs on a database that apps open only for a single change each.
@Suite struct BusyDatabaseTests {
    @Test(
        arguments: [
            ["inspect", "app.db"], ["diff", "app.db", "other.db"], ["diff", "other.db", "app.db"],
            ["pack", "app.db", "--product", "org.example.a", "--version", "1.0.0"],
        ])
    func `a database can be inspected, compared and packed while its WAL appears and disappears`(
        _ verb: [String]
    ) throws {
        let scratch = try Scratch()
        let path = scratch.path("app.db")
        let made = try scratch.moult(
            """
            sqlite3 app.db 'PRAGMA journal_mode = WAL; CREATE TABLE note(x); INSERT INTO note VALUES(1)'
            sqlite3 other.db 'CREATE TABLE note(x); INSERT INTO note VALUES(-1)'
            """)
        #expect(made.status == 0, "\(made)")
        let apps = try (1...2).map { _ in try Program.singleChanges(path, "UPDATE note SET x = x + 1") }
        // `diff` exits with 2 for a difference.
        let expected: Int32 = verb[0] == "diff" ? 2 : 0
        for _ in 1...10 {
            let ended = try scratch.moult("rm -rf releases; moult \(verb.joined(separator: " "))")
            #expect((ended.status, ended.err) == (expected, ""), "\(ended)")
        }
        for app in apps {
            app.closeInput()
            #expect(app.wait() == 0)
        }
    }
}

import TestSupport
import Testing

/// Where `moult build` puts its database.
@Suite struct BuildVerbTests {
    /// There may be all that somebody has written.
    @Test func `nothing in a store is replaced`() throws {
        let scratch = try Scratch()
        let refused = try scratch.moult(
            """
            echo 'CREATE TABLE t(x);' > a.sql; moult init -q store --product org.example.a; sqlite3 store/notes.db 'CREATE TABLE mine(x)'
            cp store/notes.db kept; moult build a.sql -o store/notes.db; echo $?; cmp kept store/notes.db
            """)
        #expect((refused.status, refused.out) == (0, "3\n"))
        #expect(
            refused.err == """
                moult: error: cannot build store/notes.db: it is there already, in a store
                  Build it elsewhere: a release brings it into the store.

                """)
    }

    @Test func `an older build is replaced`() throws {
        let scratch = try Scratch()
        let twice = try scratch.moult(
            "echo 'CREATE TABLE t(x);' > a.sql; moult build -q a.sql -o a.db && moult build -q a.sql -o a.db")
        #expect(twice == (0, "", ""))
    }
}

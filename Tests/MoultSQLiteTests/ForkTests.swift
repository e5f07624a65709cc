import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultSQLite

@Suite struct ForkTests {
    /// Swift does not import `fork`.
    private static let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> Int32).self)

    @Test func `a child does not use the connections of its parent, and leaves the parent's transaction alone`() throws
    {
        let scratch = try Scratch()
        let path = scratch.path("note.db")
        let connection = try Connection(path: path, access: .readWriteCreate)
        try connection.execute("CREATE TABLE note(x); BEGIN IMMEDIATE; INSERT INTO note VALUES(1)")
        let child = Self.fork()
        if child == 0 {
            do { try connection.execute("INSERT INTO note VALUES(2)") } catch let error as MoultError {
                guard error.why == "it belongs to the parent process, which has its locks" else { _exit(1) }
                do { try connection.close() } catch { _exit(2) }
                _exit(connection.isOpen ? 3 : 0)
            } catch { _exit(4) }
            _exit(5)
        }
        var status: Int32 = -1
        waitpid(child, &status, 0)
        #expect(status == 0)
        #expect(try Shell.run(["sqlite3", path, "INSERT INTO note VALUES(3)"]).errors.contains("database is locked"))
        try connection.execute("COMMIT")
        #expect(try connection.int("SELECT count(*) FROM note") == 1)
        try connection.close()
    }
}

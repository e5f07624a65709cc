import MoultBasics
import MoultFiles
import TestSupport
import Testing

@testable import MoultSQLite

/// Another user can put a pipe in place of a file after its kind was checked, and before SQLite opens it.
@Suite struct LatePipeTests {
    @Test(.timeLimit(.minutes(1)), arguments: ["", "-shm", "-wal", "-journal"])
    func `SQLite does not wait for a pipe`(suffix: String) throws {
        let scratch = try Scratch()
        let path = scratch.path("a.db")
        try Shell.must(["sqlite3", path, "PRAGMA journal_mode = WAL; CREATE TABLE t(x)"])
        let file = try Connection.OpenableFile(path, .readWrite)
        try Shell.must(["sh", "-ec", "rm -f '\(path)\(suffix)'; mkfifo '\(path)\(suffix)'"])
        let ended = Result {
            let connection = try Connection(
                uri: Access.readWrite.uri(for: path), path: path, file: file, busyTimeout: 0)
            try connection.execute("INSERT INTO t VALUES(1)")
        }
        if suffix != "-journal" { #expect(throws: MoultError.self) { try ended.get() } }
    }

    /// An update holds such a lease on a database for a moment.
    @Test(.timeLimit(.minutes(1))) func `SQLite waits for a lease of another process`() throws {
        let scratch = try Scratch()
        let path = scratch.path("a.db")
        try Shell.must(["sqlite3", path, "CREATE TABLE t(x)"])
        let holder = try Program([
            "python3", "-c",
            """
            import fcntl, os, signal, sys
            file = os.open(sys.argv[1], os.O_RDONLY)
            broken = []
            signal.signal(signal.SIGIO, lambda *_: broken.append(fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)))
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            print("ready", flush=True)
            while not broken: signal.pause()
            print("broken", flush=True)
            sys.stdin.read()
            """, path,
        ])
        #expect(holder.line() == "ready")
        #expect(try Connection(path: path, access: .readWrite).int("SELECT count(*) FROM t") == 0)
        #expect(holder.line() == "broken")
        holder.closeInput()
        #expect(holder.wait() == 0)
    }
}

import MoultBasics
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

@Suite struct DatabaseHeaderTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test(arguments: [512, 4096, 65536])
    func `the header shows the page size`(pageSize: Int) throws {
        let path = try scratch.database(
            "a.db",
            """
            PRAGMA page_size = \(pageSize); PRAGMA application_id = -7; PRAGMA user_version = 42;
            PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(200000));
            """)
        let header = try DatabaseHeader(ofOwnFile: path)
        #expect(header.pageSize == pageSize)
        #expect(header.applicationID == -7)
        #expect(header.userVersion == 42)
        #expect(header.encoding == .utf16LittleEndian)
        #expect(!header.isWAL)
        #expect(Int(header.pageCount) * pageSize == (try scratch.size("a.db")))
    }

    @Test func `the header shows WAL mode`() throws {
        let path = try scratch.database("a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
        #expect(try DatabaseHeader(ofOwnFile: path).isWAL)
    }

    @Test(
        arguments: [
            ([], "the file has only 0 bytes"), ([7], "the file has only 1 byte"),
            (Array("SQLite format 3".utf8), "the file has only 15 bytes"),
            (
                [UInt8]("PK\u{3}\u{4}".utf8) + [UInt8](repeating: 0, count: 200),
                "it does not start with the header of a SQLite database"
            ),
            (
                [UInt8]("SQLite format 3\0".utf8) + [UInt8](repeating: 1, count: 84),
                "its header has the invalid page size 257"
            ),
        ] as [([UInt8], String)])
    func `an error says why a file is not a database`(bytes: [UInt8], why: String) throws {
        let path = try scratch.file("a.db", bytes)
        let error = #expect(throws: MoultError.self) { _ = try DatabaseHeader(ofOwnFile: path) }
        #expect(error?.code == .databaseCorrupt)
        #expect(error?.description == "\(path) is not a SQLite database: \(why)")
    }

    @Test func `a directory is not a database`() throws {
        let error = #expect(throws: MoultError.self) { _ = try DatabaseHeader(ofOwnFile: scratch.path) }
        #expect(error?.why == "it is not a regular file")
    }

    /// SQLite ignores the bytes behind the last page, but to read a hole of terabytes takes hours.
    @Test func `a file that is much longer than its pages is refused by its header alone`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t (a)")
        try DatabaseHeader.requireNoExcess(at: path)
        try Shell.must(["truncate", "-s", "64M", path])
        try DatabaseHeader.requireNoExcess(at: path)
        try Shell.must(["truncate", "-s", "2T", path])
        let error = #expect(throws: MoultError.self) { try DatabaseHeader.requireNoExcess(at: path) }
        #expect(error?.code == .databaseCorrupt)
        #expect(
            error?.why
                == "the file has 2199023255552 bytes, and its header says 2 pages of 4096 bytes, which is 8192")
        // The pages may be in the WAL.
        try scratch.file("a.db-wal", [0])
        try DatabaseHeader.requireNoExcess(at: path)
    }

    @Test(arguments: [-4096, -1, 1, 4096])
    func `a file that is longer or shorter than its pages is refused`(_ difference: Int) throws {
        let path = try scratch.database("a.db", "CREATE TABLE t (a); CREATE TABLE u (a)")
        #expect(try scratch.size("a.db") == 3 * 4096)
        #expect(truncate(path, 3 * 4096 + difference) == 0)
        let error = #expect(throws: MoultError.self) { _ = try DatabaseHeader(ofOwnFile: path) }
        #expect(
            error?.why
                == "the file has \(12288 + difference) bytes, and its header says 3 pages of 4096 bytes, which is 12288"
        )
    }

    /// A process that reads a database file directly and closes it loses its POSIX locks on the file, and another
    /// process may write in the middle of the first one's transaction. Reading the header through SQLite's own
    /// descriptor, or through a `Descriptor`, keeps the locks.
    @Test func `reading a file directly drops its locks, and reading its header does not`() throws {
        let path = try scratch.database("a.db", "CREATE TABLE t (a)")
        let connection = try Connection(path: path, access: .readWrite)
        let otherWrites = { try? Shell.must(["sqlite3", path, "BEGIN IMMEDIATE"]) }

        try connection.execute("BEGIN IMMEDIATE")
        #expect(try connection.header().pageSize == 4096)
        #expect(otherWrites() == nil)

        _ = try DatabaseHeader(ofOwnFile: path)
        #expect(otherWrites() == nil)

        close(open(path, O_RDONLY))
        #expect(otherWrites() != nil)
    }
}

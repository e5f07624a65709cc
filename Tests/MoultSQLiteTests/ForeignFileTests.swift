import MoultBasics
import MoultFiles
import MoultLibc
import MoultSQLite
import TestSupport
import Testing

/// Files that another user puts next to a database do not make SQLite use or delete other files.
@Suite struct ForeignFileTests {
    private let scratch: Scratch
    private var path: String { scratch.path("a.db") }

    init() throws {
        scratch = try Scratch()
        let connection = try Connection(path: path, access: .readWriteCreate)
        try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        try connection.close()
    }

    /// Writes a hot journal without pages that names a super-journal.
    private func plantJournal(naming name: String) throws {
        func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        let pages = try #require(try Files.facts(path)).size / 4096
        var journal = magic + number(0) + number(0) + number(pages) + number(512) + number(4096)
        journal += [UInt8](repeating: 0, count: 512 - journal.count)
        let bytes = Array(name.utf8)
        journal += number((1 << 30) / 4096 + 1) + bytes + number(bytes.count)
        journal += number(bytes.reduce(0) { $0 + Int($1) }) + magic
        try Files.writeNew(journal, to: "\(path)-journal")
    }

    private func readAndWrite() throws {
        #expect(try NonInvasiveReader.into(path) { try $0.int("SELECT a FROM t") } == 1)
        let connection = try Connection(path: path, access: .readWrite)
        #expect(try connection.int("SELECT a FROM t") == 1)
        try connection.close()
        #expect(try Files.facts("\(path)-journal") == nil)
    }

    @Test(arguments: ["victim", "a.db", "a.db-mj0000008AB", "a.db-mj00000G9AB"])
    func `the rollback of a journal does not delete an arbitrary file that it names as its super-journal`(
        _ name: String
    ) throws {
        let victim = scratch.path(name)
        if name != "a.db" { try Files.writeNew(Array("precious".utf8), to: victim) }
        try plantJournal(naming: victim)
        try readAndWrite()
        #expect(try Files.facts(victim) != nil)
    }

    @Test(arguments: ["-wal", "-journal", "-shm"], [false, true])
    func `a journal that names a sidecar of another database does not delete it`(_ suffix: String, isOpen: Bool) throws
    {
        let other = try Connection(path: scratch.path("b.db"), access: .readWriteCreate)
        try other.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (7)")
        let victim = scratch.path("b.db\(suffix)")
        if suffix == "-journal" { try Files.writeNew(Array("precious".utf8), to: victim) }
        // Without the files that another connection has open, the database would look as after a crash.
        if !isOpen {
            try Shell.must(["sh", "-ec", "cd '\(scratch.path)' && mkdir aside && cp b.db* aside"])
            try other.close()
            try Shell.must(["sh", "-ec", "cd '\(scratch.path)' && cp aside/* ."])
        }
        try plantJournal(naming: victim)
        let connection = try Connection(path: path, access: .readWrite)
        #expect(throws: MoultError.self) { try connection.int("SELECT a FROM t") }
        try connection.close()
        #expect(try Files.facts(victim) != nil)
        try readAndWrite()
        if isOpen { try other.close() }
    }

    @Test func `a super-journal is removed after the rollback`() throws {
        let name = scratch.path("a.db-mj0123459AB")
        try Files.writeNew(Array("\(path)-journal\0".utf8), to: name)
        try plantJournal(naming: name)
        try readAndWrite()
        #expect(try Files.facts(name) == nil)
    }

    @Test func `a journal whose super-journal is missing counts as committed and is not rolled back`() throws {
        try plantJournal(naming: scratch.path("a.db-mj0123459AB"))
        try readAndWrite()
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"), arguments: ["-journal", "-wal"])
    func `a sidecar of another user is refused if only the owner may write to the database`(_ suffix: String) throws {
        try Files.writeNew([1], to: path + suffix)
        try Shell.must(["chown", "65534", path + suffix])
        let error = #expect(throws: MoultError.self) { try Connection(path: path, access: .readWrite) }
        #expect(
            error?.description.contains("belongs to user \(Files.userName(65534)), but only user root may write")
                == true)
        try Shell.must(["chmod", "666", path])
        #expect(throws: Never.self) { try Connection(path: path, access: .readWrite).close() }
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"), arguments: ["1777", "775", "755"])
    func `a sidecar is refused if its user need not be in the group that may write to the database`(_ mode: String)
        throws
    {
        try Files.writeNew([1], to: "\(path)-journal")
        try Shell.must(["chown", "65534", "\(path)-journal"])
        try Shell.must(["chmod", "664", path])
        try Shell.must(["chgrp", "100", path])
        // With 775, the members of another group can create files in the directory.
        try Shell.must(["chmod", mode, scratch.path])
        let result = Result { try Connection(path: path, access: .readWrite).close() }
        #expect(((try? result.get()) != nil) == (mode == "755"), "\(result)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"), arguments: ["-wal", "-journal"])
    func `the advised command gives a foreign sidecar with rows to the owner of the database`(_ suffix: String) throws {
        let connection = try Connection(path: path, access: .readWrite)
        if suffix == "-wal" {
            try connection.execute("PRAGMA journal_mode = WAL; INSERT INTO t VALUES (2)")
        } else {
            try connection.execute("PRAGMA cache_spill = 1; PRAGMA cache_size = 1; BEGIN; UPDATE t SET a = 3")
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                INSERT INTO t SELECT hex(zeroblob(200)) FROM n
                """)
        }
        // A copy of the files as they are now is what a crash leaves.
        let copy = scratch.path("b.db")
        try Shell.must(["cp", path, copy])
        try Shell.must(["cp", path + suffix, copy + suffix])
        if suffix == "-journal" { try connection.execute("ROLLBACK") }
        try connection.close()
        try Shell.must(["chown", "65534", copy + suffix])
        let error = try #require(throws: MoultError.self) { try Connection(path: copy, access: .readWrite) }
        let advice = try #require(error.now?.description)
        #expect(advice.hasPrefix("The sidecar may contain rows of the database."), "\(advice)")
        let command = try #require(advice.firstMatch(of: /run: (chown .*?)\. If another/)?.output.1)
        try Shell.must(["sh", "-ec", String(command)])
        let again = try Connection(path: copy, access: .readWrite)
        #expect(try again.int("SELECT sum(a) FROM t") == (suffix == "-wal" ? 3 : 1))
        try again.close()
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root may give files away"),
        arguments: [Access.readWrite, .readOnly, .immutable])
    func `another user's link to a file of root is not followed`(_ access: Access) throws {
        let link = scratch.path("link.db")
        try Files.symlink(to: path, at: link)
        try Connection(path: link, access: access).close()
        try Shell.must(["chown", "-h", "65534", link])
        // Only root or the owner of this directory can have put the link there.
        try Connection(path: link, access: access).close()
        try Shell.must(["chmod", "1777", scratch.path])
        let error = #expect(throws: MoultError.self) { try Connection(path: link, access: access) }
        #expect(
            error?.description.contains("the symbolic link \(link) belongs to user \(Files.userName(65534))") == true)
        // The other user could exchange a directory on the way after the check.
        try Shell.must(["chown", "65534", path])
        #expect(throws: MoultError.self) { try Connection(path: link, access: access) }
        try Files.remove(path)
        #expect(throws: MoultError.self) { try Connection(path: link, access: .readWriteCreate) }
        #expect(try Files.facts(path) == nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may give files away"))
    func `SQL does not attach a file through another user's link`() throws {
        let link = scratch.path("link.db")
        try Files.symlink(to: path, at: link)
        let connection = try Connection.inMemory()
        try connection.execute("ATTACH '\(link)' AS a; DETACH a")
        try Shell.must(["chown", "-h", "65534", link])
        try Shell.must(["chmod", "1777", scratch.path])
        #expect(throws: MoultError.self) { try connection.execute("ATTACH '\(link)' AS a") }
    }
}

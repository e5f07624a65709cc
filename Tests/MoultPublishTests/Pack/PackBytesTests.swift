import MoultBasics
import MoultFiles
import MoultPublish
import MoultRows
import MoultSQLite
import MoultTrust
import TestSupport
import Testing

/// A database file in rollback mode is published byte for byte, also while an app has it open.
@Suite struct PackBytesTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func pack(_ version: Int = 1, warn: @escaping (String) -> Void = { _ in }) throws -> PackReport {
        let draft = """
            { "manifest": 1, "product": "org.example.shop", "version": "\(version).0.0", "sequence": \(version),
              "databases": { "food": { "kind": "reference", "source": "food.db" } } }
            """
        try scratch.file("draft.json", draft)
        var options = PackOptions()
        (options.output, options.environment, options.warn) = (scratch.path("out"), [:], warn)
        return try Packer(options).pack(draft: scratch.path("draft.json"))
    }

    /// Unpacks the database of a release.
    private func unpacked(_ report: PackReport) throws -> String {
        let open = try scratch.directory("open")
        try Files.remove("\(open)/food.db")
        try Shell.must(["bsdtar", "-xf", try #require(report.bundle), "-C", open])
        return "\(open)/food.db"
    }

    private static let rows = """
        CREATE TABLE food(id INTEGER PRIMARY KEY, name);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO food SELECT i, printf('%.*c', 100, 'x') FROM n;
        """

    @Test(arguments: [512, 4096, 65536]) func `a file in rollback mode keeps its bytes`(_ pageSize: Int) throws {
        let source = try scratch.database(
            "food.db", "PRAGMA page_size = \(pageSize); \(Self.rows) UPDATE food SET name = 'y' WHERE id = 7")
        let before = try (scratch.bytes("food.db"), Files.facts(source))
        let report = try pack()
        let database = try #require(report.databases.first)
        #expect(database.taken?.reason == nil && database.taken?.freeBytes == 0)
        #expect(try database.sha256 == SHA256.digest(ofFileAt: source).hex)
        #expect(try Files.read(unpacked(report), limit: 1 << 24) == before.0)
        #expect(try Files.facts(source) == before.1)
    }

    @Test func `the content of a WAL database is copied through SQLite`() throws {
        let app = try Connection(path: scratch.path("food.db"), access: .readWriteCreate)
        try app.execute("PRAGMA journal_mode = WAL; \(Self.rows)")
        let report = try pack()
        #expect(report.databases.first?.taken?.reason == "it is in WAL mode")
        let copy = try unpacked(report)
        #expect(
            try Shell.must(["sqlite3", copy, "SELECT count(*) FROM food; PRAGMA journal_mode"]) == "2000\ndelete\n")
        try app.close()
        let again = try pack(2)
        #expect(again.databases.first?.taken?.reason == "it is in WAL mode")
    }

    /// SQLite ignores bytes after the last page, and the release must not have them.
    @Test func `a file with more pages than its header says is copied through SQLite`() throws {
        let source = try scratch.database("food.db", Self.rows)
        try scratch.file("food.db", scratch.bytes("food.db") + [UInt8](repeating: 7, count: 4096))
        let report = try pack()
        #expect(report.databases.first?.taken?.reason == "its size does not match its header")
        let size = try #require(try Files.facts(source)).size
        #expect(report.databases.first?.size == size - 4096)
    }

    @Test func `free pages with old content are named`() throws {
        let source = try scratch.database("food.db", "PRAGMA secure_delete = OFF; \(Self.rows) DELETE FROM food")
        var warnings: [String] = []
        let report = try pack(2) { warnings.append($0) }
        let free = try #require(report.databases.first?.taken).freeBytes
        #expect(free > 200_000)
        #expect(
            warnings == [
                "\(source) has \(ByteCount(free)) of free pages with old content, such as deleted rows, and every store gets them. To remove them: sqlite3 \(source) VACUUM"
            ])
        try Shell.must(["sqlite3", source, "VACUUM"])
        warnings = []
        #expect(try pack(3) { warnings.append($0) }.databases.first?.taken?.freeBytes == 0)
        #expect(warnings == [])
    }

    @Test func `free pages of zeros are not named`() throws {
        try scratch.database("food.db", "PRAGMA secure_delete = ON; \(Self.rows) DELETE FROM food")
        let report = try pack()
        #expect(report.databases.first?.taken?.freeBytes == 0)
        #expect(try Shell.must(["sqlite3", scratch.path("food.db"), "PRAGMA freelist_count"]) != "0\n")
    }

    /// The app adds two rows with the same number in each transaction. Every release has the
    /// state after some transaction, and the app loses none.
    @Test(arguments: ["delete", "truncate", "persist", "wal"]) func `an app writes while its database is packed`(
        _ mode: String
    )
        throws
    {
        let path = try scratch.database(
            "food.db", "PRAGMA journal_mode = \(mode); \(Self.rows) CREATE TABLE pair(number, half)")
        try scratch.file(
            "app.py",
            """
            import os, sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
            c.execute("pragma synchronous=off"); c.execute("pragma journal_mode=\(mode)"); c.execute("pragma cache_size=5")
            n = 0
            while not os.path.exists(sys.argv[1] + "-stop"):
                c.execute("begin immediate")
                c.execute("insert into pair values(?, 1)", (n,))
                c.execute("update food set name = ? || substr(name, 1, 90) where id % 7 = ? % 7", (str(n), n))
                c.execute("insert into pair values(?, 2)", (n,))
                c.execute("commit")
                n += 1
                time.sleep(0.002)
            print(n)
            """)
        let app = try Background(["python3", scratch.path("app.py"), path])
        let count = {
            try Int(Shell.must(["sqlite3", "-cmd", ".timeout 60000", path, "SELECT count(*) FROM pair"]).dropLast())
                ?? 0
        }
        var counts: [Int] = []
        for version in 1...4 {
            let before = try count()
            try app.wait { try count() > before }
            let report = try pack(version)
            #expect(report.databases.first?.taken?.reason == (mode == "wal" ? "it is in WAL mode" : nil))
            let copy = try unpacked(report)
            #expect(try Shell.must(["sqlite3", copy, "PRAGMA integrity_check"]) == "ok\n")
            let odd = "SELECT count(*) FROM (SELECT number FROM pair GROUP BY number HAVING count(*) != 2)"
            #expect(try Shell.must(["sqlite3", copy, odd]) == "0\n")
            counts.append(try Int(Shell.must(["sqlite3", copy, "SELECT count(*) FROM pair"]).dropLast()) ?? 0)
        }
        try scratch.file("food.db-stop", "")
        let committed = try #require(Int(app.end().dropLast()))
        #expect(counts == counts.sorted() && Set(counts).count == counts.count)
        #expect(try count() == 2 * committed)
    }
}

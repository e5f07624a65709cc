import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// The caches of a release are kept if they match; otherwise they are set aside with their sidecars and recreated.
@Suite struct CacheTests {
    let scratch: Scratch
    let maker: ReleaseMaker
    let store: Store
    var root: String { scratch.path("store") }
    var path: String { scratch.path("store/thumbs.db") }
    var quarantine: String { scratch.path("store/.moult/quarantine") }

    init() throws {
        scratch = try Scratch()
        maker = try ReleaseMaker(in: scratch.path("releases"))
        store = Store(at: scratch.path("store"))
    }

    static let one = "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB); CREATE INDEX by_image ON thumb(image);"
    static let two = "CREATE TABLE thumb(id INTEGER PRIMARY KEY, image BLOB, width INTEGER);"

    private func release(_ version: String, _ sequence: Int, _ sql: String, more: [JSON.Member] = []) throws -> String {
        try maker.make(version, sequence: sequence, [.cache("thumbs", sql, more: more)])
    }

    private func sqlite(_ sql: String) throws -> String { try Shell.must(["sqlite3", path, sql]) }

    /// Returns the sets in quarantine.
    private func sets() throws -> [String] {
        try Files.list(quarantine).map { "\(quarantine)/\($0)" }
    }

    private var fresh: String {
        get throws {
            try sqlite("SELECT count(*), (SELECT group_concat(name) FROM pragma_table_info('thumb')) FROM thumb")
        }
    }

    @Test func `a cache is created from the release and kept while it matches`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO thumb(image) VALUES(x'01')")
        let inode = try Files.facts(path)?.inode
        // Differences in white space, quotes, case and order do not change the schema.
        let same =
            "create table [thumb] ( \"id\" integer primary key , image blob ) ;\ncreate index BY_IMAGE on thumb (image);"
        let written = same.replacing("BY_IMAGE", with: "by_image")
        try store.updateBlocking(to: release("2.0.0", 2, written))
        #expect(try Files.facts(path)?.inode == inode)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "1\n")
        #expect(try sets().isEmpty)
    }

    @Test func `a cache with a different schema is set aside with its sidecars`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        // A killed app has left rows that are only in the WAL.
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma journal_mode=wal")
            c.execute("begin")
            c.executemany("insert into thumb(image) values(?)", [(b"x" * 100,)] * 500)
            c.execute("commit")
            os._exit(0)
            """, path,
        ])
        let next = try release("2.0.0", 2, Self.two)
        let plan = try store.plan(next)
        #expect(
            plan.effects.map(\.text).contains(
                "thumbs.db: the content goes to quarantine: its schema does not match release 2.0.0"))
        try store.updateBlocking(to: next)
        #expect(try fresh == "0|id,image,width\n")
        #expect(try Files.facts("\(path)-wal") == nil)
        let set = try #require(sets().first)
        // The set is complete, and the rows of its WAL can still be read.
        #expect(try Shell.must(["sqlite3", "\(set)/thumbs.db", "SELECT count(*) FROM thumb"]) == "500\n")
        let label = try #require(try QuarantineRecord(in: set))
        #expect(label.database == "thumbs" && label.kind == .cache && label.path == path)
        #expect(try store.isCurrent(next))
    }

    static let broken: [(name: String, make: String)] = [
        ("another schema", "sqlite3 thumbs.db 'DROP INDEX by_image'"),
        ("one table more", "sqlite3 thumbs.db 'CREATE TABLE more(x)'"),
        ("no database", "echo 'this is not a database at all' > thumbs.db"),
        ("zero bytes", ": > thumbs.db"),
        ("one byte", "printf x > thumbs.db"),
        ("cut off", "truncate -s 5000 thumbs.db"),
        ("a torn header", "dd if=/dev/zero of=thumbs.db bs=1 count=100 conv=notrunc status=none"),
        ("a damaged schema", "dd if=/dev/urandom of=thumbs.db bs=1 seek=100 count=3000 conv=notrunc status=none"),
        ("a directory", "rm thumbs.db && mkdir thumbs.db && echo x > thumbs.db/file"),
        ("a link to nowhere", "rm thumbs.db && ln -s /nonexistent/thumbs.db thumbs.db"),
        ("only a WAL", "cp other.db-wal thumbs.db-wal && rm thumbs.db"),
        ("a foreign WAL", "cp other.db-wal thumbs.db-wal"),
    ]

    @Test(arguments: broken)
    func `an unusable cache is set aside and recreated`(_ broken: (name: String, make: String)) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        try Shell.must(
            [
                "python3", "-c",
                """
                import os, sqlite3
                c = sqlite3.connect("other.db", isolation_level=None)
                c.execute("pragma journal_mode=wal")
                c.execute("create table other(x)")
                c.executemany("insert into other values(?)", [("y" * 100,)] * 500)
                os._exit(0)
                """,
            ], in: root)
        try Shell.must(["sh", "-ec", broken.make], in: root)
        let names = try Files.list(root).filter { $0.hasPrefix("thumbs.db") }
        let sizes = try names.map { try Files.facts("\(root)/\($0)")?.size }
        try store.updateBlocking(to: release("2.0.0", 2, Self.one))
        #expect(try fresh == "0|id,image\n")
        #expect(try Files.list(root).filter { $0.hasPrefix("thumbs.db") } == ["thumbs.db"])
        // An empty file has no content to keep.
        if broken.name == "zero bytes" { return #expect(try sets().isEmpty) }
        let set = try #require(try sets().first)
        #expect(try Files.list(set).filter { $0.hasPrefix("thumbs.db") } == names)
        #expect(try names.map { try Files.facts("\(set)/\($0)")?.size } == sizes)
    }

    @Test func `a cache with a hot journal is kept`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite("INSERT INTO thumb(image) VALUES(x'01')")
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("pragma cache_size=1")
            c.execute("begin immediate")
            c.executemany("insert into thumb(image) values(?)", [(b"x" * 2000,)] * 200)
            os._exit(0)
            """, path,
        ])
        #expect(try Files.facts("\(path)-journal") != nil)
        try store.updateBlocking(to: release("2.0.0", 2, Self.one))
        #expect(try sets().isEmpty)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "1\n")
    }

    @Test(
        arguments: [
            (
                "PRAGMA application_id = 7; PRAGMA user_version = 4",
                "its user_version is 4, and the release needs at least 5"
            ),
            (
                "PRAGMA application_id = 7; PRAGMA user_version = 9",
                "its user_version is 9, and the release supports at most 8"
            ),
            ("PRAGMA user_version = 5; PRAGMA application_id = 8", "its application_id is 8, not 7"),
            ("PRAGMA user_version = 5; PRAGMA application_id = 7", nil),
            ("PRAGMA user_version = 8; PRAGMA application_id = 7", nil),
        ] as [(String, String?)])
    func `a cache is replaced if its version numbers differ`(sql: String, why: String?) throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        _ = try sqlite(sql)
        let compatible = JSON.Member(
            "compatible", ["applicationID": 7, "userVersionAtLeast": 5, "userVersionAtMost": 8])
        let text = try store.plan(release("2.0.0", 2, Self.one, more: [compatible])).effects.map(\.text)
        let line =
            why.map { "thumbs.db: the content goes to quarantine: \($0)" } ?? "its schema matches the release"
        #expect(text.contains(line), "\(text)")
    }

    /// A process holds a lock on the cache, and the error names the process. After the process exits, the update
    /// succeeds.
    @Test func `a locked cache is replaced after its lock is released`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        let stuck = try Background([
            "python3", "-c",
            """
            import sqlite3, sys, time
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("begin exclusive")
            open(sys.argv[2], "w").close()
            while True: time.sleep(1)
            """, path, scratch.path("ready"),
        ])
        try stuck.wait { try Files.facts(scratch.path("ready")) != nil }
        let next = try release("2.0.0", 2, Self.two)
        try Settings.rewrite(StoreLayout(root: root), "waitForApps", 1)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(error?.outcome == .busy)
        #expect(error?.why?.contains("pid \(stuck.pid) (") == true)
        stuck.stop()
        try store.updateBlocking(to: next)
        #expect(try fresh == "0|id,image,width\n")
    }

    @Test func `a cache without a schema digest is refused, and the error names the field`() throws {
        var source = ReleaseMaker.Source.reference("thumbs", Self.one)
        source.kind = "cache"
        let manifest = try maker.make("1.0.0", sequence: 1, [source])
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: manifest) }
        #expect(error?.outcome == .refused)
        #expect(error?.what == "databases.thumbs.identity.schema is missing")
    }

    @Test func `user data does not become a cache`() throws {
        try store.updateBlocking(to: maker.make("1.0.0", sequence: 1, [.user("thumbs", "CREATE TABLE note(text);")]))
        let before = try Tree(root, skipping: [".moult/history.jsonl", ".moult/transactions"])
        let next = try release("2.0.0", 2, Self.one)
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(error?.what == "\(path) belongs to the user database \"thumbs\"")
        #expect(try Tree(root, skipping: [".moult/history.jsonl", ".moult/transactions"]) == before)
    }

    /// If a file cannot be removed, the update fails and nothing changes.
    @Test func `an update fails if it cannot delete a cache`() throws {
        try store.updateBlocking(to: release("1.0.0", 1, Self.one))
        let next = try release("2.0.0", 2, Self.two)
        let locked = try Shell.run(["chattr", "+i", path])
        if locked.status != 0 { try Test.cancel("the file cannot be made immutable: \(locked.errors)") }
        defer { _ = try? Shell.run(["chattr", "-i", path]) }
        let error = #expect(throws: MoultError.self) { try store.updateBlocking(to: next) }
        #expect(error?.outcome == .undone)
        #expect(error?.description.contains(path) == true)
        #expect(try store.plan(next).changesStore)
        #expect(try sqlite("SELECT count(*) FROM thumb") == "0\n")
        #expect(try sets().isEmpty)
    }

    // MARK: a separate directory

    @Test(arguments: ["/dev/shm", "/tmp"])
    func `caches may be in a separate directory`(parent: String) throws {
        var template = Array("\(parent)/moult-caches-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { try Test.cancel("\(parent) cannot be used") }
        let caches = String(cString: made) + "/app"
        defer { _ = try? Files.removeTree(String(cString: made)) }
        let one = try release("1.0.0", 1, Self.one)
        try Orchestrator.create(at: root, Settings(product: maker.product))
        try Settings.rewrite(StoreLayout(root: root), "cacheRoot", .string(caches))
        try store.updateBlocking(to: one)
        #expect(try Files.facts(path) == nil)
        #expect(try store.path(of: "thumbs") == "\(caches)/thumbs.db")
        #expect(
            try Files.read("\(caches)/CACHEDIR.TAG", limit: 1000)?.starts(
                with: "Signature: 8a477f597d28d172789f06886806bc55".utf8) == true)
        #expect(try store.isCurrent(one))
        try Shell.must(["sqlite3", "\(caches)/thumbs.db", "INSERT INTO thumb(image) VALUES(x'01')"])
        let two = try release("2.0.0", 2, Self.two)
        try store.updateBlocking(to: two)
        let connection = try store.connect()
        #expect(try connection.texts("SELECT count(*) FROM thumbs.thumb WHERE width IS NULL") == [["0"]])
        try connection.close()
        #expect(try store.isCurrent(two))
        let sets = try Files.list("\(caches)/.moult/quarantine")
        #expect(sets.count == 1)
        #expect(try Files.list("\(caches)/.moult/staging").isEmpty)
    }
}

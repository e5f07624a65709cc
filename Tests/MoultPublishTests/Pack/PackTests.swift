import MoultArchive
import MoultBasics
import MoultFiles
import MoultLibc
import MoultPublish
import StepKit
import TestSupport
import Testing

@Suite struct PackTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func draft(in directory: String, _ databases: String, more: String = "") throws -> String {
        let path = "\(directory)/draft.json"
        try Files.remove(path)
        let text = """
            { // as a person writes it
              "manifest": 1, "product": "org.example.shop", "version": "1.0.0", "sequence": 1, \(more)
              "databases": { \(databases) },
            }
            """
        try Files.writeNew(Array(text.utf8), to: path)
        return path
    }

    private func pack(
        _ draft: String, to output: String, format: ArchiveKind = .tar(.zstd), name: String? = nil
    ) throws -> PackReport {
        var options = PackOptions()
        options.name = name
        options.output = output
        options.format = format
        options.environment = [:]
        return try Packer(options).pack(draft: draft)
    }

    private func make(_ directory: String) throws -> String {
        try Files.ensureDirectory(directory)
        try Files.writeNew(Array("1|egg\n2|milk\n".utf8), to: "\(directory)/food.csv")
        let script =
            "CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT);\n.mode csv\n.separator |\n.import food.csv food\n"
        try Files.writeNew(Array(script.utf8), to: "\(directory)/make.sql")
        try Shell.must(["sqlite3", "\(directory)/user.db", "CREATE TABLE note(text)"])
        return try draft(
            in: directory,
            #""food": { "kind": "reference", "build": { "script": "make.sql" } }, "user": { "kind": "user" }"#)
    }

    /// A release that names a commit must contain the files of that commit.
    @Test func `a dirty tree is refused unless allowed`() throws {
        let directory = scratch.path("in")
        _ = try make(directory)
        let draft = try draft(
            in: directory,
            #""food": { "kind": "reference", "build": { "script": "make.sql", "define": { "made": "${git.revision}" } } }"#
        )
        func git(_ arguments: String...) throws {
            try Shell.must(["git", "-c", "user.name=A", "-c", "user.email=a@example.org"] + arguments, in: directory)
        }
        try git("init", "-q")
        try git("add", "-A")
        try git("commit", "-q", "-m", "one")
        _ = try pack(draft, to: scratch.path("clean"))
        try Shell.must(["sh", "-ec", "echo '3|salt' >> food.csv"], in: directory)
        let error = try #require(throws: MoultError.self) { try pack(draft, to: scratch.path("dirty")) }
        #expect(error.description.contains("--allow-dirty"), "\(error)")
        #expect(try Files.facts(scratch.path("dirty/shop-1.0.0.json")) == nil)
        var options = PackOptions()
        options.output = scratch.path("told")
        options.environment = [:]
        options.allowDirty = true
        #expect(try Files.facts(Packer(options).pack(draft: draft).manifest) != nil)
    }

    @Test func `the same inputs give the same bytes`() throws {
        let one = try pack(make(scratch.path("one")), to: scratch.path("out-one"))
        let before = umask(0o077)
        defer { umask(before) }
        // The release is packed again later, from files with older times. Neither may affect the result.
        let begun = time(nil)
        while time(nil) == begun { usleep(10_000) }
        let later = try make(scratch.path("elsewhere"))
        try Shell.must(["sh", "-ec", "touch -d 2001-02-03 *"], in: scratch.path("elsewhere"))
        let two = try pack(later, to: scratch.path("out-two"))
        #expect(try Files.read(one.manifest, limit: 1 << 20) == Files.read(two.manifest, limit: 1 << 20))
        let bundles = [try #require(one.bundle), try #require(two.bundle)]
        #expect(try Files.read(bundles[0], limit: 1 << 20) == Files.read(bundles[1], limit: 1 << 20))
        // The second bundle is made from files that only this user can read.
        #expect(try bundles.map { try #require(try Files.facts($0)).mode } == [0o644, 0o600])
        // Packing the same content again is not an error and changes nothing.
        _ = try pack("\(scratch.path("one"))/draft.json", to: scratch.path("out-one"))
        #expect(try Files.list(scratch.path("out-one")) == ["shop-1.0.0.json", "shop-1.0.0.tar.zst"])
    }

    @Test(arguments: ["tar.zst", "tar.gz", "tar.xz", "zip"])
    func `bsdtar can unpack the bundle`(_ ending: String) throws {
        let report = try pack(
            make(scratch.path("in")), to: scratch.path("out"), format: ArchiveKind(fileName: "x.\(ending)"))
        let open = try scratch.directory("open")
        try Shell.must(["bsdtar", "-xf", try #require(report.bundle), "-C", open])
        #expect(try Shell.must(["sqlite3", "\(open)/food.db", "SELECT * FROM food"]) == "1|egg\n2|milk\n")
    }

    /// A higher level gives a smaller bundle.
    @Test(.tags(.thorough)) func `pack --level sets the compression level`() throws {
        let path = try make(scratch.path("in"))
        try Shell.must(
            ["sh", "-ec", "seq 1 200000 | awk '{ print $1 \"|food \" $1 % 977 }' > food.csv"], in: scratch.path("in"))
        var sizes: [Int] = []
        for level in [1, 19] {
            var options = PackOptions()
            options.output = scratch.path("level-\(level)")
            options.environment = [:]
            options.level = level
            let bundle = try #require(Packer(options).pack(draft: path).bundle)
            sizes.append(try #require(try Files.facts(bundle)).size)
            try Shell.must(["sh", "-ec", "zstd -dc \(bundle) | sha256sum > \(scratch.path("digest-\(level)"))"])
        }
        #expect(sizes[1] < sizes[0])
        #expect(try scratch.bytes("digest-1") == scratch.bytes("digest-19"))
    }

    @Test func `pack refuses to change a published version`() throws {
        let path = try make(scratch.path("in"))
        _ = try pack(path, to: scratch.path("out"))
        try Shell.must(["sqlite3", scratch.path("in/user.db"), "CREATE TABLE more(x)"])
        let error = #expect(throws: MoultError.self) { try pack(path, to: scratch.path("out")) }
        #expect(error?.outcome == .refused)
        #expect(error?.why == "a published version must not change")
    }

    @Test func `a release packed with --name replaces the previous one`() throws {
        let directory = try scratch.directory("in")
        for name in ["food", "user"] {
            try Shell.must(["sqlite3", "\(directory)/\(name).db", "CREATE TABLE t(id)"])
        }
        let output = scratch.path("out")
        let inPlace = #""kind": "reference", "place": "in-place""#
        let both = #""food": { \#(inPlace) }, "user": { "kind": "user" }"#
        let first = try pack(draft(in: directory, both), to: output, name: "app")
        #expect(first.manifest == "\(output)/app.json")
        #expect(try Files.list(output) == ["app.json", "app.tar.zst", "food.db"])
        // The same version is packed with different content, and files that only the old content has are removed.
        try Shell.must(["sqlite3", "\(directory)/other.db", "CREATE TABLE other(id)"])
        _ = try pack(draft(in: directory, #""other": { \#(inPlace) }"#), to: output, name: "app")
        #expect(try Files.list(output) == ["app.json", "other.db"])
        let error = #expect(throws: MoultError.self) { try pack(draft(in: directory, both), to: output, name: "a/b") }
        #expect(error?.outcome == .usage)
    }

    @Test func `a refused release leaves the databases of the published one`() throws {
        let directory = try scratch.directory("in")
        let path = try draft(in: directory, #""food": { "kind": "reference", "place": "in-place" }"#)
        try Shell.must(["sqlite3", "\(directory)/food.db", "CREATE TABLE t(id)"])
        _ = try pack(path, to: scratch.path("out"))
        let published = try scratch.bytes("out/food.db")
        try Shell.must(["sqlite3", "\(directory)/food.db", "INSERT INTO t VALUES(1)"])
        #expect(throws: MoultError.self) { try pack(path, to: scratch.path("out")) }
        #expect(try scratch.bytes("out/food.db") == published)
    }

    @Test func `the manifest names the SQLite that wrote it`() throws {
        let report = try pack(make(scratch.path("in")), to: scratch.path("out"))
        let manifest = try Manifest(
            parsing: try #require(try Files.read(report.manifest, limit: 1 << 20)), as: .sealed, source: "m")
        let library =
            "import sqlite3; c = sqlite3.connect(''); print(*c.execute('SELECT sqlite_version(), sqlite_source_id()').fetchone())"
        #expect(manifest.sqlite == (try Shell.must(["python3", "-c", library]).trimmed))
    }

    @Test func `only the committed content of a database in use is packed`() throws {
        let directory = try scratch.directory("in")
        try Shell.must([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1])
            c.execute("pragma journal_mode=wal")
            c.execute("create table food(id)")
            c.executemany("insert into food values(?)", [(i,) for i in range(500)])
            c.commit()
            os._exit(0)
            """, "\(directory)/food.db",
        ])
        let before = try Tree(directory)
        let report = try pack(draft(in: directory, #""food": { "kind": "reference" }"#), to: scratch.path("out"))
        let open = try scratch.directory("open")
        try Shell.must(["tar", "-xf", try #require(report.bundle), "-C", open])
        #expect(try Files.list(open) == ["food.db"])
        #expect(
            try Shell.must(["sqlite3", "\(open)/food.db", "SELECT count(*) FROM food; PRAGMA journal_mode"])
                == "500\ndelete\n")
        try Files.remove("\(directory)/draft.json")
        #expect(try Tree(directory).lines.dropFirst() == before.lines.dropFirst())
    }

    @Test func `pack refuses an unsound database and reports the finding`() throws {
        let directory = try scratch.directory("in")
        try Shell.must([
            "sqlite3", "\(directory)/food.db",
            "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE b(a REFERENCES a(id)); INSERT INTO b VALUES(7);",
        ])
        let path = try draft(in: directory, #""food": { "kind": "reference" }"#)
        let before = try Tree(directory)
        let error = #expect(throws: MoultError.self) { try pack(path, to: scratch.path("out")) }
        #expect(try Tree(directory) == before)
        #expect(error?.outcome == .refused)
        #expect(error?.why == "row 1 of table b refers to a row of a that does not exist")
        #expect(try Files.list(scratch.path("out")).isEmpty)
    }

    /// A page of an index is overwritten: the file can be opened, and its tables can be read.
    @Test func `pack refuses a damaged database and does not change the file`() throws {
        let directory = try scratch.directory("in")
        let database = "\(directory)/food.db"
        try Shell.must([
            "sqlite3", database,
            """
            CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO food SELECT i, 'food ' || i FROM n;
            CREATE INDEX food_name ON food(name);
            """,
        ])
        let root = try Shell.must(["sqlite3", database, "SELECT rootpage FROM sqlite_schema WHERE name = 'food_name'"])
        let page = try #require(Int(root.trimmed))
        try Shell.must([
            "dd", "if=/dev/zero", "of=\(database)", "bs=1", "seek=\((page - 1) * 4096 + 2000)", "count=1000",
            "conv=notrunc",
            "status=none",
        ])
        let path = try draft(in: directory, #""food": { "kind": "reference" }"#)
        let before = try Tree(directory)
        let error = #expect(throws: MoultError.self) { try pack(path, to: scratch.path("out")) }
        #expect(error?.outcome == .refused, "\(error?.description ?? "")")
        #expect(error?.what == "the database food is damaged")
        #expect(try Files.list(scratch.path("out")).isEmpty)
        #expect(try Tree(directory) == before)
    }
}

import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The set that a restore uses if only the database is named, and the database that it restores.
@Suite struct RestoreTargetTests {
    let shop: Shop

    init() throws {
        shop = try Shop()
        try Settings.rewrite(StoreLayout(root: shop.store), "keep", 10)
    }

    private static let note = "CREATE TABLE note(id INTEGER PRIMARY KEY, t);"

    /// Packs releases 1.0.0 to `count`.0.0 of a shared database, with content that differs.
    private func pack(_ count: Int, _ sql: String) throws {
        for version in 1...count {
            try shop.pack("\(version).0.0", [.shared("\(sql) CREATE TABLE z\(version)(y);")])
        }
    }

    private func expectRefused(_ words: [String], _ why: String) throws {
        let before = try shop.tree()
        let ended = try shop.moult(["quarantine"] + words)
        #expect(ended.status == 3 && ended.errors.contains(why), "\(ended)")
        #expect(try shop.tree() == before)
    }

    /// moult would replace the cache later without keeping the rows.
    @Test func `user data is not restored into a cache`() throws {
        try shop.pack("1.0.0", [.user(Self.note, name: "diary")])
        try shop.pack("2.0.0", [.cache(Self.note, name: "diary")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO note VALUES(1, 'precious')")
        try shop.install("2.0.0", "--take-over", "diary")
        for words in [["--restore", "diary"], ["--restore", "diary", "--table", "note"]] {
            try expectRefused(words, "diary is a cache, which moult replaces without keeping its rows")
        }
        let copy = shop.scratch.path("copy.db")
        #expect(try shop.moult("quarantine", "--export", copy, "diary").status == 0)
        #expect(try Shop.read(copy, "SELECT t FROM note") == "precious\n")
    }

    @Test func `a set is not restored into another database that now has the same name`() throws {
        let one = JSON.Member("path", "one.db")
        try shop.pack("1.0.0", [.user(Self.note, name: "notes", more: [one])])
        try shop.pack("2.0.0", [.user(Self.note, name: "diary", more: [one])])
        try shop.pack(
            "3.0.0",
            [
                .user(Self.note, name: "diary", more: [one]),
                .user(Self.note, name: "notes", more: [.init("path", "three.db")]),
            ])
        try shop.install("1.0.0")
        try shop.sql("one.db", "INSERT INTO note VALUES(1, 'one')")
        try #require(shop.moult("reset", "notes", "--set-user-data-aside").status == 0)
        for version in ["2.0.0", "3.0.0"] { try shop.install(version) }
        try shop.sql("three.db", "INSERT INTO note VALUES(9, 'three')")
        try expectRefused(["--restore", "notes"], "notes is at three.db, and one.db belongs to diary")
        try expectRefused(["--restore", "notes", "--table", "note"], "one.db belongs to diary")
    }

    /// A set that was kept because of a view has no rows that are missing elsewhere.
    @Test func `the newest set is used if its content is a view`() throws {
        try pack(3, "CREATE TABLE n(id INTEGER PRIMARY KEY, x);")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO n VALUES(1, 'monday')")
        try shop.install("2.0.0", "--accept-unpreserved")
        try shop.sql("app.db", "CREATE VIEW report AS SELECT 'of the user'")
        try shop.install("3.0.0", "--accept-unpreserved")
        let copy = shop.scratch.path("copy.db")
        #expect(try shop.moult("quarantine", "--export", copy, "app").status == 0)
        #expect(try Shop.read(copy, "SELECT * FROM report") == "of the user\n")
    }

    @Test func `the restore of a virtual table says how to get its rows`() throws {
        try pack(2, "CREATE VIRTUAL TABLE memo USING fts5(text);")
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO memo VALUES('of the user')")
        try shop.install("2.0.0", "--accept-unpreserved")
        try expectRefused(["--restore", "app", "--table", "memo"], "memo is a virtual table")
        #expect(try shop.moult("quarantine", "--restore", "app").status == 0)
        #expect(try shop.read("app.db", "SELECT text FROM memo") == "of the user\n")
    }
}

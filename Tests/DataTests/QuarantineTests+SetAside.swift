import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// Databases that a reset sets aside, and how they are restored and removed.
extension QuarantineTests {
    /// Resets the user database; returns the new set in quarantine.
    func setAside() throws -> Shop.Kept {
        let before = try shop.kept("diary").map(\.directory)
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        return try #require(try shop.kept("diary").first { !before.contains($0.directory) })
    }

    @Test(arguments: ["wal", "persist"])
    func `a healthy database is set aside as one file`(mode: String) throws {
        try begin()
        try App.run(
            shop.path("diary.db"), crash: true, "PRAGMA journal_mode = \(mode)", "INSERT INTO note VALUES('LATE')")
        let set = try setAside()
        let files = try Files.list(set.directory).filter { $0.hasPrefix("diary.db") }
        #expect(files == ["diary.db"])
        #expect(try set.sql("diary.db", "SELECT t FROM note") == "LATE\n")
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == "0\n")
    }

    @Test(arguments: ["-wal", "-journal"])
    func `a sidecar that SQLite would discard is kept in the set`(suffix: String) throws {
        try begin()
        try shop.sql("diary.db", "PRAGMA journal_mode = WAL; INSERT INTO note VALUES('LATE')")
        try Files.replace(shop.path("diary.db\(suffix)"), with: Array(repeating: UInt8(ascii: "x"), count: 9000))
        let set = try setAside()
        #expect(try Files.list(set.directory).filter { $0.hasPrefix("diary.db") } == ["diary.db", "diary.db\(suffix)"])
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == "0\n")
    }

    @Test(arguments: ["delete", "persist", "wal"])
    func `a locked database is not replaced by a restore, and an open one is`(mode: String) throws {
        try begin()
        try App.run(shop.path("diary.db"), "PRAGMA journal_mode = \(mode)", "INSERT INTO note VALUES('LATE')")
        let app = try App(
            opens: shop.path("diary.db"), "PRAGMA journal_mode = \(mode)", "PRAGMA locking_mode = EXCLUSIVE",
            "INSERT INTO note VALUES('LOCKED')")
        let before = try shop.tree()
        let ended = try shop.moult("quarantine", "--restore", "diary")
        #expect(ended.status == 75 && ended.errors.contains("pid \(app.pid)"), "\(ended)")
        #expect(try shop.tree() == before)
        app.quit()
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == "2\n")
        let open = try App(opens: shop.path("diary.db"), "PRAGMA journal_mode = \(mode)", "SELECT count(*) FROM note")
        try shop.must("quarantine", "--restore", "diary")
        open.quit()
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("diary.db", "PRAGMA journal_mode") == (mode == "wal" ? "wal\n" : "delete\n"))
    }

    @Test func `a damaged database is set aside with all its sidecars`() throws {
        try begin()
        let content = Array(repeating: UInt8(ascii: "x"), count: 9000)
        for suffix in ["", "-wal", "-journal"] { try Files.replace(shop.path("diary.db\(suffix)"), with: content) }
        let set = try setAside()
        #expect(
            try Files.list(set.directory).filter { $0.hasPrefix("diary.db") }.sorted()
                == ["diary.db", "diary.db-journal", "diary.db-wal"])
        #expect(try shop.read("diary.db", "SELECT count(*) FROM note") == "0\n")
    }

    @Test func `a restore uses the path in the manifest, not the path in the record`() throws {
        try begin()
        let kept = try shop.onlyKept("diary")
        let victim = shop.scratch.path("victim.db")
        try Files.writeNew(Array("precious".utf8), to: victim)
        let changed = kept.record.setting("path", to: .string(victim))
        try Files.replace("\(kept.directory)/set.json", with: Array(changed.pretty.utf8))
        let ended = try shop.moult("quarantine", "--restore", "diary")
        #expect([0, 3].contains(ended.status), "\(ended.errors)")
        #expect(String(decoding: try Files.read(victim, limit: 100) ?? [], as: UTF8.self) == "precious")
    }

    @Test func `--older-than removes user data only with --user-data`() throws {
        try begin()
        #expect(try shop.moult("quarantine", "--remove", "--older-than", "0").status == 0)
        #expect(try shop.kept().compactMap(\.database).sorted() == ["app", "diary"])
        #expect(try shop.moult("quarantine", "--remove", "--older-than", "0", "--user-data").status == 0)
        #expect(try shop.kept().isEmpty)
    }

    @Test func `--older-than with a name removes only sets of that database`() throws {
        try begin()
        let before = try shop.kept().count
        let none = try shop.moult("quarantine", "--remove", "--older-than", "0", "--user-data", "dairy")
        #expect(none.status == 3 && none.errors.contains("has no set or database named \"dairy\""), "\(none)")
        #expect(try shop.kept().count == before)
        let spared = try shop.moult("quarantine", "--remove", "--older-than", "0", "diary")
        #expect(spared.output.contains("stays: it contains user data"), "\(spared)")
        #expect(spared.output.contains("--user-data"), "\(spared)")
        #expect(try shop.moult("quarantine", "--remove", "--older-than", "0", "--user-data", "diary").status == 0)
        #expect(try shop.kept("diary").isEmpty)
        #expect(try shop.kept().count == before - 1)
    }

    @Test func `--older-than keeps newer sets`() throws {
        try begin()
        #expect(try shop.moult("quarantine", "--remove", "--older-than", "1", "--user-data").status == 0)
        #expect(try shop.kept().count == 3)
    }

    @Test func `a set in quarantine can be removed by the name of its database`() throws {
        try begin()
        #expect(try shop.moult("quarantine", "--remove", "diary").status == 0)
        #expect(try shop.kept().compactMap(\.database).sorted() == ["app", "cache"])
    }

    @Test(arguments: ["../../..", "..", "", ".", "/", "../generations"])
    func `nothing is removed or exported if the ID of the set is invalid`(id: String) throws {
        try begin()
        let before = try shop.tree()
        #expect(try shop.moult("quarantine", "--remove", id).status != 0)
        #expect(try shop.tree() == before)
        #expect(try shop.moult("quarantine", "--export", shop.scratch.path("x.db"), id).status != 0)
        #expect(try Files.facts(shop.scratch.path("x.db")) == nil)
        #expect(try shop.moult("quarantine").status == 0)
    }

    @Test func `clean never removes data that the app or a user wrote`() throws {
        try begin()
        #expect(try shop.moult("clean").status == 0)
        #expect(try !shop.databases(with: "DIARY").isEmpty)
        #expect(try shop.databases(with: "APP").contains { $0.hasPrefix(".moult/quarantine/") })
    }

    @Test(arguments: [true, false])
    func `user data that was replaced by a cache is not removed like a cache`(isDroppedBetween: Bool) throws {
        let sql = "CREATE TABLE note(t);"
        try shop.pack("1.0.0", [.user(sql), .cache("CREATE TABLE c(x);")])
        try shop.install("1.0.0")
        try shop.sql("diary.db", "INSERT INTO note VALUES('MINE')")
        if isDroppedBetween {
            try shop.pack("2.0.0", [.cache("CREATE TABLE c(x);")])
            try shop.install("2.0.0")
        }
        // The cache has a different name than the user database, the same path, and a matching schema.
        let cache = Shipped(name: "thumbs", kind: "cache", sql: sql, more: [.init("path", "diary.db")])
        try shop.pack("3.0.0", [cache])
        let refused = try shop.apply("3.0.0")
        #expect(refused.status == 3 && refused.errors.contains("--take-over thumbs"), "\(refused.errors)")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "MINE\n")
        try shop.install("3.0.0", "--take-over", "thumbs")
        #expect(try shop.moult("quarantine", "--remove", "--older-than", "0").status == 0)
        let kept = try shop.onlyKept("thumbs")
        #expect(try kept.sql("diary.db", "SELECT t FROM note") == "MINE\n")
    }
}

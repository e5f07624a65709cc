import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A rollback to files from before moult, after a release has moved databases, and the way forward again.
@Suite struct MovedAdoptedTests {
    let shop: Shop

    /// Installs a release over an app's files, then one that moves them.
    init() throws {
        shop = try Shop()
        try shop.sql("diary.db", "CREATE TABLE note(t); INSERT INTO note VALUES('DIARY'); PRAGMA user_version = 1;")
        try shop.sql("app.db", MovedPathTests.item + "INSERT INTO item VALUES('BEFORE', 1);")
        for (version, prefix) in [("1.0.0", ""), ("2.0.0", "new-")] {
            try shop.pack(
                version,
                [
                    .user(
                        "CREATE TABLE note(t); PRAGMA user_version = 1;",
                        more: [.init("path", .string("\(prefix)diary.db"))]),
                    .shared(
                        MovedPathTests.item + "INSERT INTO item VALUES('\(version)', 0);", [MovedPathTests.own],
                        more: [.init("path", .string("\(prefix)app.db"))]),
                ])
            try shop.install(version)
        }
        try shop.sql("new-app.db", "INSERT INTO item VALUES('LATER', 1)")
    }

    @discardableResult private func rollback(_ more: String...) throws -> [String] {
        let ended = try shop.moult(["rollback", "--to", "0+adopted"] + more)
        try #require(ended.status == (more == ["--dry-run"] ? 2 : 0), "\(ended.errors)")
        return warnings(ended)
    }

    private func warnings(_ ended: Shell.Ended) -> [String] {
        ended.errors.split(separator: "\n").filter { $0.hasPrefix("moult: warning: ") }.map(String.init)
    }

    @Test(arguments: [true, false])
    func `a rollback to the adopted files names the databases that stay at their new paths`(isDry: Bool) throws {
        let warnings = try isDry ? rollback("--dry-run") : rollback()
        for (path, old) in [("new-diary.db", "diary.db"), ("new-app.db", "app.db")] {
            let line = warnings.first { $0.contains(shop.path(path)) && $0.contains(shop.path(old)) }
            #expect(line?.contains("stays") == true, "\(warnings)")
        }
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item WHERE mine") == "BEFORE\nLATER\n")
    }

    @Test func `the data of a user database that was moved back by hand moves with the next update`() throws {
        try rollback()
        try Files.rename(shop.path("new-diary.db"), to: shop.path("diary.db"))
        try shop.sql("diary.db", "INSERT INTO note VALUES('BACK')")
        try shop.must("unhold", "2.0.0")
        try shop.install("2.0.0")
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\nBACK\n")
        #expect(try Files.facts(shop.path("diary.db")) == nil)
    }

    @Test func `an update from the adopted files names rows that it leaves at the old path`() throws {
        try rollback()
        try shop.sql("app.db", "INSERT INTO item VALUES('BACK', 1)")
        try shop.must("unhold", "2.0.0")
        let ended = try shop.apply("2.0.0")
        try #require(ended.status == 0, "\(ended.errors)")
        let warnings = warnings(ended)
        #expect(
            warnings.contains { $0.contains(shop.path("app.db")) && $0.contains(shop.path("new-app.db")) },
            "\(warnings)")
        #expect(try shop.read("app.db", "SELECT name FROM item WHERE mine") == "BEFORE\nBACK\n")
        #expect(try shop.read("new-app.db", "SELECT name FROM item WHERE mine") == "BEFORE\nLATER\n")
    }

    @Test func `an update from the adopted files names a user database that the old app has created again`() throws {
        try rollback()
        try shop.sql("diary.db", "CREATE TABLE note(t); INSERT INTO note VALUES('BACK'); PRAGMA user_version = 1;")
        try shop.must("unhold", "2.0.0")
        let warnings = try warnings(shop.apply("2.0.0"))
        #expect(warnings.contains { $0.contains(shop.path("diary.db")) && $0.contains("stays") }, "\(warnings)")
        #expect(try shop.read("new-diary.db", "SELECT t FROM note") == "DIARY\n")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "BACK\n")
    }

    /// Nothing kept has the old path, so the file does not move.
    @Test func `an update from the adopted files names a user database that it creates although it existed`() throws {
        try rollback()
        try Files.rename(shop.path("new-diary.db"), to: shop.path("diary.db"))
        for name in try Files.list(shop.path(".moult/generations")) where name.hasPrefix("1.0.0") {
            try Files.removeTree(shop.path(".moult/generations/\(name)"))
        }
        try shop.must("unhold", "2.0.0")
        let warnings = try warnings(shop.apply("2.0.0"))
        #expect(warnings.contains { $0.contains("\(shop.path("new-diary.db")) is missing") }, "\(warnings)")
        #expect(try shop.read("diary.db", "SELECT t FROM note") == "DIARY\n")
    }

    @Test func `a rollback to the adopted files says nothing about databases that were not moved`() throws {
        let shop = try Shop()
        try shop.sql("app.db", MovedPathTests.item + "INSERT INTO item VALUES('BEFORE', 1);")
        try shop.pack(
            "1.0.0", [.user("CREATE TABLE note(t);"), .shared(MovedPathTests.item, [MovedPathTests.own])])
        try shop.install("1.0.0")
        let ended = try shop.moult("rollback", "--to", "0+adopted")
        #expect(ended.status == 0 && warnings(ended).isEmpty, "\(ended.errors)")
    }
}

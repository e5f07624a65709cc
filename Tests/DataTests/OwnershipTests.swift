import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// An update keeps the owner, group, mode, ACL and extended attributes of a writable database.
@Suite struct OwnershipTests {
    let shop: Shop

    static let item = "CREATE TABLE item(name TEXT PRIMARY KEY, mine INT DEFAULT 0);"
    static let own: JSON = ["table": "item", "where": "mine = 1"]

    init() throws {
        shop = try Shop()
        // Rollbacks go from 1.5.0 to 1.0.0, because user databases have the same schema in both.
        for (version, word) in [("1.0.0", "ONE"), ("1.5.0", "MORE"), ("2.0.0", "TWO")] {
            let second = version == "2.0.0"
            try shop.pack(
                version,
                [
                    .shared(
                        Self.item + "INSERT INTO item VALUES('\(word)', 0);", [Self.own], name: "exchanged"),
                    .shared(
                        Self.item + "INSERT INTO item VALUES('\(word)', 0);", [Self.own], name: "replaced"),
                    .user(
                        "CREATE TABLE note(t\(second ? ", d" : "")); PRAGMA user_version = \(second ? 2 : 1);",
                        second ? ["m/2.sql": "ALTER TABLE note ADD COLUMN d; PRAGMA user_version = 2;"] : [:]),
                    .cache("CREATE TABLE thumb(x\(second ? ", y" : ""));"),
                ])
        }
        try shop.install("1.0.0")
    }

    static let names = ["exchanged", "replaced", "diary", "cache"]

    /// Returns the access rights of each database: mode, owner and group, ACL and attributes.
    private func access() throws -> [String] {
        try Self.names.map { name in
            try Shell.must(["stat", "-c", "\(name) %a %u %g", shop.path("\(name).db")])
                + Shell.must(["python3", "-c", Self.list, shop.path("\(name).db")])
        }
    }

    private static let list = """
        import os, sys
        for name in sorted(os.listxattr(sys.argv[1])):
            if name.startswith("security."): continue
            print(name, os.getxattr(sys.argv[1], name).hex())
        """
    private static let setACL = """
        import os, struct, sys
        entries = [(1, 6, -1), (2, 6, 4713), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
        for path in sys.argv[1:]:
            os.setxattr(path, "system.posix_acl_access", acl)
            os.setxattr(path, "user.origin", b"the app")
        """

    private func setMode(_ mode: String) throws {
        try Shell.must(["chmod", mode] + Self.names.map { shop.path("\($0).db") })
    }

    @Test(arguments: ["600", "660", "640", "666"]) func `an update keeps the file mode`(mode: String) throws {
        try setMode(mode)
        let before = try access()
        try shop.install("2.0.0")
        #expect(try access() == before)
    }

    @Test func `a rollback keeps the file mode`() throws {
        try shop.install("1.5.0")
        try setMode("600")
        let before = try access()
        #expect(try shop.moult("rollback").status == 0)
        #expect(try access() == before)
    }

    @Test(arguments: names) func `a reset keeps the file mode`(name: String) throws {
        try setMode("600")
        let before = try access()
        let ended = try shop.moult("reset", name, "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try access() == before)
    }

    @Test func `a reset of a damaged database keeps the file mode`() throws {
        try setMode("600")
        try Shell.must(["sh", "-ec", "echo damaged > '\(shop.path("diary.db"))'"])
        #expect(try shop.moult("reset", "diary", "--set-user-data-aside").status == 0)
        #expect(try Files.facts(shop.path("diary.db"))?.mode == 0o600)
    }

    @Test func `an update keeps an ACL and extended attributes`() throws {
        do {
            try Shell.must(["python3", "-c", Self.setACL] + Self.names.map { shop.path("\($0).db") })
        } catch {
            try Test.cancel("the file system has no ACL: \(error)")
        }
        let before = try access()
        try shop.install("2.0.0")
        #expect(try access() == before)
    }

    @Test func `the record of a set in quarantine contains the owner`() throws {
        try shop.sql("exchanged.db", "INSERT INTO item VALUES('APP', 0)")
        try setMode("640")
        try shop.install("2.0.0")
        let kept = try shop.onlyKept("exchanged")
        #expect(kept.record["owner"]?["uid"]?.integer == Int64(geteuid()))
        #expect(kept.record["owner"]?["gid"]?.integer == Int64(getegid()))
        #expect(kept.record["owner"]?["mode"]?.string == "0640")
    }

    // MARK: As root

    @Test(.enabled(if: geteuid() == 0, "only root may change the owner of a file"))
    func `an update by root keeps the owner and group`() throws {
        try setMode("660")
        try Shell.must(["chown", "4711:4712"] + Self.names.map { shop.path("\($0).db") })
        let before = try access()
        try shop.install("1.5.0")
        #expect(try access() == before)
        #expect(try shop.moult("rollback").status == 0)
        #expect(try access() == before)
        try shop.install("2.0.0")
        #expect(try access() == before)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may change the owner of a file"), arguments: names)
    func `a reset by root keeps the owner and group`(name: String) throws {
        try setMode("660")
        try Shell.must(["chown", "4711:4712"] + Self.names.map { shop.path("\($0).db") })
        let before = try access()
        let ended = try shop.moult("reset", name, "--set-user-data-aside")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try access() == before)
        #expect(try shop.onlyKept(name).record["owner"]?["uid"]?.integer == 4711)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may change the owner of a file"))
    func `after an update by root, another user's app can still write`() throws {
        try setMode("660")
        try Shell.must(["chown", "4711:4712", shop.path("exchanged.db"), shop.path("replaced.db")])
        try Shell.must(["chown", "0:4712", shop.store])
        try Shell.must(["chmod", "1775", shop.store])
        try Shell.must(["chmod", "755", shop.scratch.path])
        try shop.install("2.0.0")
        for name in ["exchanged", "replaced"] {
            let ended = try Shell.run([
                "setpriv", "--reuid", "4711", "--regid", "4712", "--clear-groups", "sqlite3", shop.path("\(name).db"),
                "INSERT INTO item VALUES('LATER', 1)",
            ])
            #expect(ended.status == 0, "\(name): \(ended.errors)")
        }
    }
}

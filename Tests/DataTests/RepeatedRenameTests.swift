import Moult
import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A release lists the renames of earlier releases as well, for stores that skip those. Each rename is applied once.
@Suite(.tags(.thorough)) struct RepeatedRenameTests {
    let shop: Shop
    init() throws { shop = try Shop() }

    /// Packs a release whose table `t` has these columns, and whose content differs from that of every other release.
    private func release(_ version: String, _ columns: String, _ renames: [JSON.Member] = []) throws {
        var preserve: [JSON.Member] = [.init("table", "t"), .init("where", "id < 900")]
        if !renames.isEmpty { preserve.append(.init("columns", .object(renames))) }
        try shop.pack(
            version,
            [
                .shared(
                    "CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns)); CREATE TABLE v(n); INSERT INTO v VALUES('\(version)')",
                    [.object(preserve)])
            ])
    }

    private func row() throws -> String { try shop.read("app.db", "SELECT * FROM t WHERE id < 900") }

    @Test func `columns that exchange their names are exchanged once`() throws {
        let swap: [JSON.Member] = [.init("a", "b"), .init("b", "a")]
        try release("1.0.0", "a, b")
        for version in ["2.0.0", "3.0.0"] { try release(version, "a, b", swap) }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t(id, a, b) VALUES(1, 'A', 'B')")
        try shop.install("2.0.0")
        #expect(try row() == "1|B|A\n")
        try shop.install("3.0.0")
        #expect(try row() == "1|B|A\n")
        try #require(shop.moult("rollback").status == 0)
        #expect(try row() == "1|B|A\n")
        try #require(shop.moult("rollback").status == 0)
        #expect(try row() == "1|A|B\n")
    }

    @Test(arguments: [false, true])
    func `each column in a chain of renames is renamed once, even if a store skips releases`(skips: Bool) throws {
        let chain: [JSON.Member] = [.init("a", "b"), .init("b", "c")]
        try release("1.0.0", "a, b")
        for version in ["2.0.0", "3.0.0", "4.0.0"] { try release(version, "b, c", chain) }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t(id, a, b) VALUES(1, 'was a', 'was b')")
        for version in skips ? ["4.0.0"] : ["2.0.0", "3.0.0", "4.0.0"] {
            try shop.install(version)
            #expect(try row() == "1|was a|was b\n", "\(version)")
        }
        #expect(try shop.kept("app").isEmpty)
        try #require(shop.moult("rollback", "--to", "1.0.0").status == 0)
        #expect(try shop.read("app.db", "SELECT a, b FROM t WHERE id < 900") == "was a|was b\n")
    }

    /// The order of a dictionary differs from process to process.
    @Test(arguments: [("1.0.0", "c", "a"), ("2.0.0", "c", "b"), ("2.0.0", "c, a", "b")])
    func `a rollback gives a column that was renamed twice the name in the older release`(
        target: String, columns: String, name: String
    ) throws {
        try release("1.0.0", "a")
        try release("2.0.0", "b", [.init("a", "b")])
        try release("3.0.0", columns, [.init("a", "c"), .init("b", "c")])
        for version in ["1.0.0", "2.0.0", "3.0.0"] { try shop.install(version) }
        try shop.sql("app.db", "INSERT INTO t(id, c) VALUES(1, 'value')")
        for _ in 1...6 {
            let plan = try shop.moult("rollback", "-n", "--to", target)
            #expect(plan.status == 2 && plan.output.contains("1 row of t to carry over"), "\(plan)")
            #expect(!plan.output.contains("without the values"), "\(plan)")
        }
        try #require(shop.moult("rollback", "--to", target).status == 0)
        #expect(try shop.read("app.db", "SELECT \(name) FROM t WHERE id = 1") == "value\n")
    }

    @Test func `an old name that a later release uses again keeps its own values`() throws {
        let rename: [JSON.Member] = [.init("desc", "note")]
        try release("1.0.0", "\"desc\"")
        try release("2.0.0", "note", rename)
        for version in ["3.0.0", "4.0.0"] { try release(version, "note, \"desc\"", rename) }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t VALUES(1, 'old')")
        for version in ["2.0.0", "3.0.0"] { try shop.install(version) }
        try shop.sql("app.db", "UPDATE t SET \"desc\" = 'new' WHERE id = 1")
        try shop.install("4.0.0")
        #expect(try row() == "1|old|new\n")
        try #require(shop.moult("rollback").status == 0)
        #expect(try row() == "1|old|new\n")
    }

    /// Puts the content of release 1.0.0 back into a store with release 3.0.0; its column is `t`, which 2.0.0 renamed to `body`.
    private func restoreContentOfTheFirst() throws {
        let rename: [JSON.Member] = [.init("t", "body")]
        try release("1.0.0", "t")
        for version in ["2.0.0", "3.0.0", "4.0.0"] { try release(version, "body", rename) }
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t VALUES(1, 'one')")
        try #require(shop.moult("reset", "app", "--set-user-data-aside").status == 0)
        let set = try #require(try shop.kept("app").first)
        for version in ["2.0.0", "3.0.0"] { try shop.install(version) }
        try #require(shop.moult("quarantine", "--restore", Files.name(of: set.directory)).status == 0)
        #expect(try shop.read("app.db", "SELECT t FROM t WHERE id = 1") == "one\n")
    }

    @Test(arguments: [false, true])
    func `a restored table gets the new column names even if its release was removed`(isRemoved: Bool) throws {
        try restoreContentOfTheFirst()
        if isRemoved {
            try Shell.must(["sh", "-ec", "cd '\(shop.store)/.moult/generations'; chmod -R u+w 1.0.0*; rm -r 1.0.0*"])
        }
        try shop.install("4.0.0")
        #expect(try row() == "1|one\n")
    }

    @Test func `a rollback gives a restored table of an older release the newer column names`() throws {
        try restoreContentOfTheFirst()
        try #require(shop.moult("rollback", "--to", "2.0.0").status == 0)
        #expect(try row() == "1|one\n")
    }

    // MARK: Content of unknown or earlier origin

    private static let swap: [JSON.Member] = [.init("a", "b"), .init("b", "a")]

    /// Installs two releases, the second of which exchanges the names of two columns, and lets the app write.
    private func beginSwapped() throws {
        try release("1.0.0", "a, b")
        try release("2.0.0", "a, b", Self.swap)
        try release("4.0.0", "a, b", Self.swap)
        try shop.install("1.0.0")
        try shop.install("2.0.0")
        try shop.sql("app.db", "INSERT INTO t(id, a, b) VALUES(1, 'A', 'B')")
    }

    @Test func `columns are not exchanged again if a release omits the database in between`() throws {
        try beginSwapped()
        try shop.pack("3.0.0", [.reference("CREATE TABLE food(x);")])
        for version in ["3.0.0", "4.0.0"] { try shop.install(version) }
        #expect(try row() == "1|A|B\n")
    }

    @Test func `columns are not exchanged in a backup that is put into a new store`() throws {
        try beginSwapped()
        let new = try Shop()
        try Files.copy(shop.path("app.db"), to: new.path("app.db"), mode: 0o644)
        try #require(new.moult("apply", shop.manifest("4.0.0")).status == 0)
        #expect(try new.read("app.db", "SELECT * FROM t WHERE id < 900") == "1|A|B\n")
    }

    @Test func `a column that is renamed in a backup keeps its values in a new store`() throws {
        try release("1.0.0", "a")
        try release("2.0.0", "b", [.init("a", "b")])
        try shop.install("1.0.0")
        try shop.sql("app.db", "INSERT INTO t(id, a) VALUES(1, 'A')")
        let new = try Shop()
        try Files.copy(shop.path("app.db"), to: new.path("app.db"), mode: 0o644)
        try #require(new.moult("apply", shop.manifest("2.0.0")).status == 0)
        #expect(try new.read("app.db", "SELECT * FROM t WHERE id < 900") == "1|A\n")
    }

    /// The set has columns of both names. Whether its release is still kept makes no difference.
    @Test(arguments: [9, 1]) func `an old rename is not applied to a restored table that has both columns`(keep: Int)
        throws
    {
        try Settings.rewrite(StoreLayout(root: shop.store), "keep", .size(keep))
        try Settings.rewrite(StoreLayout(root: shop.store), "minimumAge", 0)
        for version in ["3.0.0", "4.0.0"] { try release(version, "note, descr", [.init("descr", "note")]) }
        try shop.install("3.0.0")
        try shop.sql("app.db", "INSERT INTO t(id, note, descr) VALUES(1, 'NOTE', 'DESCR')")
        try #require(shop.moult("reset", "app", "--set-user-data-aside").status == 0)
        try shop.install("4.0.0")
        try #require(shop.moult("quarantine", "--restore", "app", "--table", "t").status == 0)
        #expect(try row() == "1|NOTE|DESCR\n")
    }
}

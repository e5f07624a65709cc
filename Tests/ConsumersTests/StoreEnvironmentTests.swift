import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

@testable import MoultRows
@testable import MoultSQLite

/// `moult status --deep` reports damage in stores, and changes nothing.
@Suite struct StoreEnvironmentTests {
    let shop: ConsumerShop

    init() throws {
        shop = try ConsumerShop()
        try shop.store.updateBlocking(to: shop.release(1))
    }

    /// Returns the findings other than advice. The store must be unchanged afterwards, including every inode and time.
    private func examine() throws -> [Finding] {
        let before = try Tree(shop.root)
        let findings = try StoreEnvironment(StoreSnapshot(shop.layout)).examine()
        #expect(try Tree(shop.root) == before)
        return findings.filter { $0.severity != .note }
    }

    @Test func `status --deep finds no problem in a sound store`() throws {
        #expect(try examine() == [])
        let said = try BuiltMoult.run("status", "--deep", "--store", shop.root)
        #expect((said.status, said.output) == (0, "\(shop.root): sound\n"))
    }

    /// Both generations contain the same file, because moult has created a hard link.
    @Test func `status --deep does not report a file that two generations share`() throws {
        let maker = try ReleaseMaker(in: shop.scratch.path("unchanged"))
        let store = Store(at: shop.scratch.path("other"))
        for number in [1, 2] {
            // Large enough for a hard link: small files are copied.
            let same = "CREATE TABLE same(x); INSERT INTO same VALUES(zeroblob(\(4 << 20)));"
            try store.updateBlocking(to: maker.make("\(number).0.0", sequence: number, [.reference("same", same)]))
        }
        let findings = try StoreEnvironment(StoreSnapshot(StoreLayout(root: shop.scratch.path("other")))).examine()
        #expect(findings.filter { $0.severity != .note } == [])
    }

    @Test(arguments: ["-wal", "-shm", "-journal"]) func `a sidecar of a read-only database is reported`(
        _ suffix: String
    )
        throws
    {
        let path = "\(shop.root)/food.db\(suffix)"
        try Files.writeNew([1], to: path)
        let found = try examine()
        #expect(found.map(\.kind) == [.sidecar])
        #expect(found.first?.path == path)
    }

    @Test func `a hot journal is reported, and the suggested command rolls it back`() throws {
        // The program is killed in a transaction that has already written to the file.
        let writer = try Shell.run([
            "python3", "-c",
            """
            import os, sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("PRAGMA cache_size=1"); c.execute("BEGIN")
            c.executemany("INSERT INTO pantry VALUES(?)", [("x" * 3000,) for _ in range(200)])
            os.kill(os.getpid(), 9)
            """, shop.pantry,
        ])
        #expect(writer.status == -9, "\(writer)")
        let found = try examine()
        #expect(found.map(\.kind) == [.hotJournal])
        let said = try BuiltMoult.run("status", "--deep", "--store", shop.root, "--json")
        #expect(said.status == 1)
        #expect(try JSON(parsing: Array(said.output.utf8), source: "status")["sound"]?.bool == false)
        try Shell.must(["sh", "-ec", found[0].advice?.commands.first?.line ?? "false"])
        #expect(try examine() == [])
        #expect(try shop.value(shop.pantry, "SELECT count(*) FROM pantry") == "1")
    }

    @Test func `status --deep does not report a journal that a program is using`() throws {
        let program = try Program.python(
            """
            import sqlite3, sys
            c = sqlite3.connect(sys.argv[1], isolation_level=None)
            c.execute("PRAGMA cache_size=1"); c.execute("BEGIN")
            c.executemany("INSERT INTO pantry VALUES(?)", [("x" * 3000,) for _ in range(200)])
            print("ready"); sys.stdin.read()
            """, shop.pantry)
        #expect(program.line() == "ready")
        #expect(try Files.facts("\(shop.pantry)-journal") != nil)
        #expect(try examine() == [])
    }

    @Test func `a hard link to a database is reported`() throws {
        try Files.hardLink(shop.pantry, at: shop.scratch.path("other name"))
        let found = try examine()
        #expect(found.map(\.kind) == [.blocked])
        #expect(found.first?.what.hasPrefix("updates are refused: \(shop.pantry) has other names") == true)
    }

    @Test func `a dangling link is reported`() throws {
        try Files.symlink(to: ".moult/current/gone.db", at: "\(shop.root)/gone.db")
        let found = try examine()
        #expect(found.map(\.kind) == [.dangling])
        try Shell.must(["sh", "-ec", found[0].advice?.commands.first?.line ?? "false"])
        #expect(try examine() == [])
    }

    @Test func `settings that every user can write to are reported`() throws {
        try Files.setMode("\(shop.root)/moult.json", 0o666)
        let found = try examine()
        #expect(found.map(\.kind) == [.writable])
        try Shell.must(["sh", "-ec", found[0].advice?.commands.first?.line ?? "false"])
        #expect(try examine() == [])
    }

    @Test func `settings for another product than that of the installed release are reported`() throws {
        let path = "\(shop.root)/moult.json"
        let text = String(decoding: try #require(try Files.read(path, limit: 1 << 16)), as: UTF8.self)
        let product = try StoreSnapshot(shop.layout).settings.product
        try Files.replace(path, with: Array(text.replacing(product, with: "org.example.other").utf8))
        let found = try examine()
        #expect(found.map(\.kind) == [.product])
        #expect(found.first?.advice == "Set \"product\" to \"\(product)\" in \(path).")
    }

    @Test func `unknown files and a broken generation are reported`() throws {
        let layout = try shop.layout
        try Files.writeNew([], to: "\(layout.hidden)/it's mine")
        try Files.makeDirectory(layout.generation("9.9.9+00000000"))
        let found = try examine()
        #expect(found.map(\.kind) == [.generation, .unknown])
        #expect(found.first?.advice == Advice(moult: "clean"))
        for finding in found {
            let words = finding.advice?.commands.first?.words ?? []
            let command = shellLine(
                words.first == "moult" ? [try BuiltMoult.path()] + words.dropFirst() + ["--store", shop.root] : words)
            try Shell.must(["sh", "-ec", "cd / && \(command)"])
        }
        #expect(try examine() == [])
        #expect(try Files.list(shop.root).contains("it's mine.moved"))
    }

    @Test func `a pointer to a missing generation is reported`() throws {
        let layout = try shop.layout
        try Files.remove(layout.current)
        try Files.symlink(to: "generations/none", at: layout.current)
        #expect(try examine().map(\.kind) == [.pointer])
    }

    @Test func `an unfinished update is reported with the command to recover`() throws {
        let transaction = "\(try shop.layout.transactions)/20260101000000-00c0ffee"
        try Files.makeDirectory(transaction)
        try Files.writeNew([], to: "\(transaction)/plan.json")
        let found = try examine()
        #expect(found.map(\.kind) == [.unfinished])
        #expect(found.first?.advice?.commands == [.init(["moult", "recover"])])
        _ = try Orchestrator(root: shop.root, steps: .builtIn).recover()
        #expect(try examine() == [])
    }

    @Test func `unused generations are reported as advice`() throws {
        try shop.set("minimumAge", "0")
        for number in 2...3 { try shop.store.updateBlocking(to: shop.release(number)) }
        // From now on, the store keeps one generation.
        try shop.set("keep", "1")
        // An unused generation is not a problem, so it is only mentioned as advice.
        #expect(try examine() == [])
        let advice = try StoreEnvironment(StoreSnapshot(shop.layout)).examine()
        #expect(advice.map(\.kind).contains(.unused))
    }

    @Test(arguments: ["rm", "cp --remove-destination .moult/current/food.db"])
    func `a path that does not lead to the release is reported`(deed: String) throws {
        try Shell.must(["bash", "-ec", "\(deed) food.db"], in: shop.root)
        let found = try examine()
        #expect(found.map(\.what) == ["it is not a symlink through .moult/current"])
        #expect(found.first?.path == "\(shop.root)/food.db")
    }

    @Test func `a read-only database in WAL mode is reported`() throws {
        // Unpacked files are in rollback mode, so the mode is changed by hand.
        let file = try shop.store.lease().path(of: "food")
        try Shell.must(["chmod", "u+w", Files.directory(of: file), file])
        try Shell.must(["sqlite3", file, "PRAGMA journal_mode=WAL"])
        try Shell.must(["chmod", "u-w", Files.directory(of: file)])
        #expect(try examine().map(\.kind).contains(.walReadOnly))
    }

    @Test func `status --deep reports an SQLite version with the WAL reset bug only as advice`() throws {
        try Shell.must(["sqlite3", shop.pantry, "PRAGMA journal_mode=WAL"])
        let advice = try StoreEnvironment(StoreSnapshot(shop.layout)).examine()
        let expected = SQLiteVersion.linked.hasWALResetBug ? [Finding.Kind.sqliteVersion] : []
        #expect(advice.map(\.kind) == expected)
        let isAllAdvice = advice.allSatisfy { $0.severity == .note }
        #expect(isAllAdvice)
    }

    /// SQLite versions, and whether each has the WAL reset bug according to sqlite.org.
    @Test(arguments: [
        (3_006_023, false), (3_007_000, true), (3_044_005, true), (3_044_006, false), (3_045_000, true),
        (3_050_006, true), (3_050_007, false), (3_051_002, true), (3_051_003, false), (3_053_000, false),
    ])
    func `SQLite versions with the WAL reset bug are recognized`(_ number: Int, _ hasBug: Bool) {
        #expect(SQLiteVersion(number: number).hasWALResetBug == hasBug)
    }
}

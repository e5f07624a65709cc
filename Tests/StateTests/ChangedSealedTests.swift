import MoultBasics
import MoultFiles
import MoultLibc
import TestSupport
import Testing

/// As root, an app can write to a read-only database, and SQLite acknowledges the row. The file is kept before it is replaced or
/// removed.
@Suite(.enabled(if: geteuid() == 0, "only root can write to a read-only file"))
struct ChangedSealedTests {
    private let store: ReleasesStore

    init() throws { store = try ReleasesStore(3, installed: 2, settings: "\"keep\": 1, \"minimumAge\": 0") }

    enum Where: String, CaseIterable, Sendable { case file, wal }

    /// Writes a row through the stable path; with `wal`, the row stays in the -wal of the file.
    private func write(_ place: Where) throws {
        let sql = "INSERT INTO food VALUES('mine')"
        try store.must(
            place == .file
                ? "sqlite3 store/food.db \"\(sql)\""
                : """
                python3 -c 'import os, sqlite3, sys
                db = sqlite3.connect("store/food.db", isolation_level=None)
                db.execute("PRAGMA journal_mode=WAL"); db.execute(sys.argv[1]); os._exit(0)' "\(sql)"
                test -s store/.moult/current/food.db-wal
                """)
        // Reading a database in WAL mode would move the row into the file.
        if place == .wal { return }
        #expect(try store.must("sqlite3 store/food.db 'SELECT count(*) FROM food WHERE release = \"mine\"'") == "1\n")
    }

    /// Expects one set in quarantine, from which the row can be exported.
    private func expectKept(_ version: String) throws {
        let sets = try #require(try store.json("moult quarantine --json")["quarantine"]?.array)
        #expect(sets.count == 1, "\(sets)")
        let set = try #require(sets.first)
        #expect(set["database"]?.string == "food")
        #expect(set["kind"]?.string == "reference")
        #expect(set["reason"]?.string == "changed")
        #expect(set["release"]?.string == version)
        #expect(set["path"]?.string == "\(store.path)/food.db")
        let id = try #require(set["id"]?.string)
        try store.must("moult quarantine -q --export kept.db \(id)")
        #expect(try store.must("sqlite3 kept.db 'SELECT release FROM food'") == "\(version)\nmine\n")
        let restore = try store.run("moult quarantine --restore \(id)")
        #expect(restore.status == 3)
        #expect(restore.errors.contains("--export"))
    }

    private static let warning = "was written to, although the file is read-only"

    private func text(_ ended: Shell.Ended) -> String { (ended.output + ended.errors).replacing(/\s+/, with: " ") }

    /// The repair refuses a -wal, because it would be read as part of the new file, and says how to move it away.
    @Test func `a repair keeps the sidecar that was moved away, together with its file`() throws {
        try write(.wal)
        // The advice concerns one sidecar at a time: the -wal, and the -shm of the program that has ended.
        for _ in 1...2 {
            let refused = try store.run("moult apply \(store.manifest("2.0.0"))")
            #expect(refused.status == 3, "\(refused)")
            let advice = try #require(refused.errors.split(separator: "Move it away: ").last)
            try store.must(String(advice.split(separator: "\n")[0]))
        }
        try store.must("moult apply -q \(store.manifest("2.0.0")); moult verify -q --deep")
        try store.must(
            "cp store/.moult/quarantine/*/food.db kept.db; cp store/.moult/quarantine/*/food.db-wal.old kept.db-wal")
        #expect(try store.must("sqlite3 kept.db 'SELECT release FROM food'") == "2.0.0\nmine\n")
        #expect(try store.must("ls store/.moult/quarantine | wc -l").trimmed == "1")
    }

    @Test func `a repair keeps a read-only file that a program has changed`() throws {
        try write(.file)
        let plan = try store.run("moult plan \(store.manifest("2.0.0"))")
        #expect(plan.status == 2, "\(plan)")
        #expect(text(plan).contains(Self.warning), "\(plan)")
        let applied = try store.run("moult apply \(store.manifest("2.0.0"))")
        #expect(applied.status == 0, "\(applied)")
        #expect(
            text(applied).contains("food: the read-only file, which a program had changed, is in quarantine"),
            "\(applied)")
        #expect(try store.must("sqlite3 'file:store/food.db?immutable=1' 'SELECT release FROM food'") == "2.0.0\n")
        try store.must("moult verify -q --deep")
        try expectKept("2.0.0")
    }

    @Test(arguments: Where.allCases)
    func `an update keeps a changed read-only file of a generation that it removes`(_ place: Where) throws {
        try write(place)
        let plan = try store.run("moult plan \(store.manifest("3.0.0"))")
        #expect(text(plan).contains(Self.warning), "\(plan)")
        let applied = try store.run("moult apply --json \(store.manifest("3.0.0"))")
        #expect(applied.status == 0, "\(applied)")
        let last = try #require(applied.output.split(separator: "\n").last)
        let result = try JSON(parsing: Array(last.utf8), source: "apply")
        #expect(result["kept"]?.array?.count == 1, "\(last)")
        #expect(try store.must("ls store/.moult/generations | cut -d+ -f1") == "3.0.0\n")
        try expectKept("2.0.0")
    }

    @Test(arguments: Where.allCases)
    func `a rollback keeps a changed read-only file of a generation that it removes`(_ place: Where) throws {
        try store.must(
            "sed -i 's/\"keep\": 1/\"keep\": 2/' store/moult.json; moult apply -q \(store.manifest("3.0.0"))")
        try write(place)
        let rolledBack = try store.run(
            "sed -i 's/\"keep\": 2/\"keep\": 1/' store/moult.json; moult rollback --reason test")
        #expect(rolledBack.status == 0, "\(rolledBack)")
        #expect(text(rolledBack).contains(Self.warning), "\(rolledBack)")
        #expect(text(rolledBack).contains("is in quarantine"), "\(rolledBack)")
        #expect(try store.must("ls store/.moult/generations | cut -d+ -f1") == "2.0.0\n")
        try expectKept("3.0.0")
    }

    @Test(arguments: Where.allCases) func `clean keeps a changed read-only file`(_ place: Where) throws {
        try store.must("sed -i 's/\"keep\": 1/\"keep\": 2/' store/moult.json")
        try write(place)
        try store.must("moult apply -q \(store.manifest("3.0.0"))")
        let cleaned = try store.run("moult clean --keep 1")
        #expect(cleaned.status == 0, "\(cleaned)")
        #expect(text(cleaned).contains("which a program had changed, is in quarantine"), "\(cleaned)")
        try expectKept("2.0.0")
    }

    /// Then another record shows the digest, or the file counts as changed.
    @Test(arguments: ["seal.json", "manifest.json", "seal.json manifest.json"])
    func `a changed file is kept even if the records of its generation are damaged`(_ records: String) throws {
        try write(.file)
        try store.must("cd store/.moult/current/; for file in \(records); do echo broken > $file; done")
        try store.must("moult apply -q \(store.manifest("2.0.0"))")
        #expect(
            try store.must("for f in store/.moult/quarantine/*/food.db; do sqlite3 $f 'SELECT release FROM food'; done")
                == "2.0.0\nmine\n")
    }

    @Test func `an unchanged file is not kept, even if its times differ`() throws {
        try store.must("touch -d 2001-01-01 store/.moult/current/food.db; moult apply -q \(store.manifest("3.0.0"))")
        #expect(try store.must("ls store/.moult/quarantine") == "")
    }

    /// A kill at any rename: the row is in the generation, in the transaction or in quarantine, and recovery keeps it.
    @Test(.tags(.thorough), arguments: 1...10) func `a repair that is killed keeps the changed file`(_ number: Int)
        throws
    {
        try write(.file)
        _ = try store.run(
            """
            strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=SIGKILL:when=\(number) \
                moult apply -q \(store.manifest("2.0.0"))
            """)
        try store.must("moult recover -q; moult apply -q \(store.manifest("2.0.0")); moult verify -q")
        try expectKept("2.0.0")
    }
}

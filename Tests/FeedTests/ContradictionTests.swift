import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// A manifest whose digests contradict each other is refused, even if it is signed.
@Suite struct ContradictionTests {
    private let bench: Bench
    private let path: String

    init() throws {
        bench = try Bench()
        path = bench.path("rel/test-1.0.0.json")
        try Files.writeNew(
            Array(
                """
                CREATE TABLE food(id INTEGER PRIMARY KEY, noise BLOB);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
                INSERT INTO food SELECT i, zeroblob(4000) FROM n;
                """.utf8), to: bench.path("food.sql"))
        try Files.writeNew(
            Array(
                """
                { "manifest": 1, "product": "org.example.test", "version": "1.0.0", "sequence": 1,
                  "databases": { "food": { "kind": "reference", "build": { "script": "food.sql" } } } }
                """.utf8), to: bench.path("draft.json"))
        try bench.must("moult pack -q draft.json -o rel; moult init -q --product org.example.test")
    }

    private func manifest() throws -> JSON {
        try JSON(parsing: try Files.read(path, limit: 1 << 20) ?? [], source: "m")
    }

    private func refused(_ change: (JSON) throws -> JSON, _ why: String) throws {
        try Files.replace(path, with: Array(change(manifest()).pretty.utf8))
        let before = try Tree(bench.path("store"), times: false, skipping: Self.skipped)
        let ended = try bench.run("moult apply -q rel/test-1.0.0.json")
        #expect(ended.status == 1)
        #expect(ended.errors.contains(why), "\(ended.errors)")
        #expect(try Tree(bench.path("store"), times: false, skipping: Self.skipped) == before)
    }

    private static let skipped: Set = [".moult/history.jsonl", ".moult/lock", ".moult/transactions"]
    private static let zeros = String(repeating: "0", count: 64)

    @Test func `the digest of the bundle must match its bytes`() throws {
        try refused(
            { $0.setting("bundle", to: ($0["bundle"] ?? .null).setting("sha256", to: .string(Self.zeros))) },
            "its SHA-256 is ")
    }

    /// The digest in the proof covers every byte of the file.
    @Test func `a signed proof does not hide a wrong digest`() throws {
        try bench.key("a")
        try bench.must("rm -rf store; moult init -q --product org.example.test --key a.pub")
        func sign(_ change: (JSON) throws -> JSON) throws -> Shell.Ended {
            try Files.replace(path, with: Array(change(manifest()).pretty.utf8))
            try bench.must("rm -f rel/*.minisig; moult sign -q rel/test-1.0.0.json -k a.key")
            return try bench.run("moult apply rel/test-1.0.0.json")
        }
        let sound = try manifest()
        for field in ["databases", "bundle"] {
            let ended = try sign { _ in
                let part = sound[field] ?? .null
                let zeros = JSON.string(Self.zeros)
                if field == "bundle" { return sound.setting(field, to: part.setting("sha256", to: zeros)) }
                let food = (part["food"] ?? .null).setting("sha256", to: zeros)
                return sound.setting(field, to: part.setting("food", to: food))
            }
            #expect(ended.status == 1)
            #expect(ended.errors.contains("and the manifest says 00000000…"), "\(ended.errors)")
        }
        let ended = try sign { _ in sound }
        #expect(ended.status == 0)
        #expect(ended.errors.contains("checked by the publisher") || ended.output.contains("checked by the publisher"))
    }

    @Test func `the digest of a database must match its bytes`() throws {
        try refused(
            { manifest in
                let databases = manifest["databases"] ?? .null
                let food = (databases["food"] ?? .null).setting("sha256", to: .string(Self.zeros))
                return manifest.setting("databases", to: databases.setting("food", to: food))
            }, "food.db")
    }
}

import Moult
import MoultBasics
import MoultFiles
import MoultLibc
import StepKit
import TestSupport
import Testing

/// A database that a step changes in staging is verified again, and never shares a file with another generation.
@Suite struct ChangedDatabaseTests {
    let scratch: Scratch
    init() throws { scratch = try Scratch() }

    /// Writes a step that runs Python code on the staged database `food`; `path` in the code is the path of the
    /// database. Returns the path of the step.
    private func program(_ work: String) throws -> String {
        try Programs.write(
            """
            #!/usr/bin/env python3
            import json, sqlite3, sys
            message = json.loads(sys.stdin.readline())
            answer = {"reply": "result"}
            if message["message"] == "describe":
                answer |= {"protocol": 1, "name": "test.step", "summary": "changes", "planIsPure": True}
            if message["message"] == "plan":
                answer["effects"] = [{"database": "food", "change": {"do": "custom", "name": "c", "text": "changed", "with": {}}}]
            if message["message"] == "prepare":
                path = message["staging"]["databases"]["food"]
                \(work)
            print(json.dumps(answer), flush=True)
            """, scratch.path("step"))
    }

    private static func sql(_ statement: String) -> String {
        "c = sqlite3.connect(path); c.execute(\"\(statement)\"); c.commit(); c.close()"
    }

    @Test func `a database that a step changed is verified and sealed`() throws {
        let world = try StepWorld(program(Self.sql("UPDATE food SET id = id + 1000 WHERE id <= 10")))
        try world.update()
        #expect(
            try Shell.must(["sqlite3", "\(world.store)/food.db", "SELECT count(*) FROM food WHERE id > 1000"]) == "10\n"
        )
        let checks = try Verifier(StoreSnapshot(StoreLayout(root: world.store))).verify(deep: true)
        #expect(checks.compactMap(\.finding) == [])
        // moult knows that the step changed the database, so applying the release again repairs nothing.
        #expect(try world.update().plan == nil)
    }

    /// A change that the step makes to the database, and the error.
    static let spoilt: [(work: String, why: String)] = [
        ("open(path, 'r+b').truncate(3000)", "food.db"),
        ("open(path, 'wb').write(b'nothing at all')", "food.db is no"),
        (sql("PRAGMA journal_mode = WAL"), "the file is in WAL mode, and SQLite would need sidecars to read it"),
        (sql("DELETE FROM food WHERE id > 5"), "SELECT count(*) FROM food"),
        (
            "f = open(path, 'r+b'); f.seek(4096); f.write(b'\\\\xff' * 64); f.close()", "food.db"
        ),
    ]

    @Test(arguments: spoilt)
    func `a database that a step damaged is refused`(_ spoilt: (work: String, why: String)) throws {
        let top: [JSON.Member] = [
            .init("checks", [["on": "food", "sql": "SELECT count(*) FROM food", "expect": "= 200"]])
        ]
        let world = try StepWorld(program(spoilt.work), releases: Releases(top: top))
        let before = try world.world.visible()
        let error = try #require(try world.failure())
        #expect("\(error)".contains(spoilt.why), "\(error)")
        #expect(try world.world.visible() == before)
        #expect(try world.world.versions() == ["1.0.0"])
    }

    /// Large enough for a hard link, because small files are copied.
    private static let same =
        World.table("food", "same") + "CREATE TABLE filler(x); INSERT INTO filler VALUES(zeroblob(\(4 << 20)));"

    /// Three releases have an identical database, which a step changes in the second release.
    @Test func `changes by a step do not affect other generations`() throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        let manifests = try ["1.1.0", "1.2.0", "1.3.0"].enumerated().map { index, version in
            try maker.make(version, sequence: index + 2, [.reference("food", Self.same)])
        }
        let world = try StepWorld(program(Self.sql("UPDATE food SET release = 'changed'")))
        func apply(_ manifest: String) throws -> String {
            _ = try world.world.orchestrator().update(ReleaseFile(manifest))
            return try Shell.must(
                ["sqlite3", "file:\(world.store)/food.db?immutable=1", "SELECT DISTINCT release FROM food"])
        }
        try world.settings { $0.setting("after", to: nil) }
        #expect(try apply(manifests[0]) == "same\n")
        let first = try #require(try Files.factsThroughLinks("\(world.store)/food.db"))

        // If the file were a hard link, the step would also change the database of the first release.
        try world.settings { $0.setting("after", to: "copy") }
        #expect(try apply(manifests[1]) == "changed\n")
        let second = try #require(try Files.factsThroughLinks("\(world.store)/food.db"))
        #expect(second.inode != first.inode && second.links == 1)
        let kept = try Files.list("\(world.store)/.moult/generations").first { $0.hasPrefix("1.1.0") } ?? ""
        #expect(
            try Shell.must([
                "sqlite3", "file:\(world.store)/.moult/generations/\(kept)/food.db?immutable=1",
                "SELECT DISTINCT release FROM food",
            ]) == "same\n")

        // According to the manifests, the second and the third release have the same file, but the step has changed the file of
        // the second.
        try world.settings { $0.setting("after", to: nil) }
        #expect(try apply(manifests[2]) == "same\n")
    }

    /// Without the step, the same releases do share the file, so the test above is meaningful.
    @Test func `without a step, generations share an unchanged file`() throws {
        let maker = try ReleaseMaker(in: scratch.path("rel"))
        let world = try StepWorld(program("pass"))
        try world.settings { $0.setting("after", to: nil) }
        var inodes: Set<UInt64> = []
        for (index, version) in ["1.1.0", "1.2.0"].enumerated() {
            let manifest = try maker.make(
                version, sequence: index + 2, [.reference("food", Self.same)])
            _ = try world.world.orchestrator().update(ReleaseFile(manifest))
            inodes.insert(try #require(try Files.factsThroughLinks("\(world.store)/food.db")).inode)
        }
        #expect(inodes.count == 1)
    }
}

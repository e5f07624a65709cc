import MoultBasics
import MoultFiles
import TestSupport
import Testing

/// The patches that `pack` makes on its own, and those that a feed keeps.
@Suite struct PatchRetentionTests {
    let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.must(
            """
            sqlite3 food.db "CREATE TABLE food(id INTEGER PRIMARY KEY, note TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                INSERT INTO food SELECT i, hex(randomblob(50)) FROM n;"
            """)
    }

    private func pack(_ version: String, into output: String = "rel", _ more: String = "") throws {
        try bench.must(
            """
            sqlite3 food.db "UPDATE food SET note = hex(randomblob(50)) WHERE id % 100 = \(version.prefix(1))"
            moult pack -q food.db --product org.example.test --version \(version) -o \(output) \(more)
            """)
    }

    private func publish(_ words: String) throws -> String {
        try bench.must("moult publish --allow-unsigned public \(words)")
    }

    /// Returns the versions from which the feed, or the manifest of the release, has patches.
    private func bases(of version: String) throws -> [String] {
        let releases = try bench.feed()["releases"]?.array ?? []
        let release = try #require(releases.first { $0["version"]?.string == version })
        let entries = release["patches"]?.array ?? []
        for entry in entries {
            let (from, file) = (entry["from"]?.string ?? "", entry["file"]?.string ?? "")
            #expect(file == "test-\(version).food.from-\(from).patch")
            #expect(try Files.facts(bench.path("public/\(file)")) != nil)
        }
        return entries.compactMap { $0["from"]?.string }
    }

    private func packed(_ version: String, in directory: String = "rel") throws -> [String] {
        let manifest = try JSON(parsing: bench.scratch.read("\(directory)/test-\(version).json"), source: version)
        return (manifest["patches"]?.array ?? []).compactMap { $0["from"]?.string }.sorted()
    }

    @Test func `pack makes patches from the newest releases without being asked, and has no other patches`() throws {
        for number in 1...5 { try pack("\(number).0.0") }
        #expect(try packed("5.0.0") == ["2.0.0", "3.0.0", "4.0.0"])
        try pack("6.0.0", "--patches 1 --delta-from rel/test-1.0.0.json")
        #expect(try packed("6.0.0") == ["1.0.0", "5.0.0"])
        try pack("7.0.0", "--patches 0")
        #expect(try packed("7.0.0") == [])
    }

    @Test func `a small release has no patches unless they are requested`() throws {
        try bench.must("sqlite3 food.db 'DELETE FROM food WHERE id > 50; VACUUM'")
        for number in 1...2 { try pack("\(number).0.0") }
        #expect(try packed("2.0.0") == [])
        try pack("3.0.0", "--delta-from rel/test-2.0.0.json")
        #expect(try packed("3.0.0") == ["2.0.0"])
    }

    @Test func `beside a feed, pack makes patches from the releases of each channel that the feed offers`() throws {
        func next(_ version: String, _ options: String = "") throws {
            try pack(version, into: "public")
            _ = try publish("public/test-\(version).json -q \(options)")
        }
        try next("1.0.0")
        try next("2.0.0", "--channel beta --rollout 10")
        try next("3.0.0", "--rollout 50")
        try next("4.0.0")
        _ = try publish("-q --withdraw 4.0.0 --reason 'wrong names'")
        // Packed, but never published.
        try pack("5.0.0", into: "public")
        try pack("6.0.0", into: "public")
        #expect(try packed("6.0.0", in: "public") == ["1.0.0", "2.0.0", "3.0.0"])
    }

    @Test func `a hotfix of an older line has patches from the releases before it`() throws {
        for version in ["1.0.0", "1.0.1", "2.0.0", "3.0.0", "4.0.0", "1.0.2"] {
            try pack(version, into: "public")
            _ = try publish("public/test-\(version).json -q")
        }
        #expect(try bases(of: "1.0.2") == ["1.0.0", "1.0.1"])
    }

    @Test func `a patch stays until its own base leaves the feed, and what goes is said`() throws {
        for number in 1...4 {
            try pack("\(number).0.0")
            _ = try publish("-q rel/test-\(number).0.0.json")
        }
        #expect(try bases(of: "4.0.0") == ["1.0.0", "2.0.0", "3.0.0"])
        #expect(try bases(of: "3.0.0") == ["1.0.0", "2.0.0"])
        let before = try bench.feed()["releases"]
        for words in ["", "--days 60"] {
            let said = try publish(words)
            #expect(!said.contains("- "), "\(said)")
            #expect(try bench.feed()["releases"] == before)
        }
        _ = try publish("-q --release 2.0.0 --rollout 30")
        _ = try publish("-q --withdraw 1.0.0 --reason 'wrong names'")
        // Stores that have it need the patch to leave it.
        #expect(try bases(of: "4.0.0") == ["1.0.0", "2.0.0", "3.0.0"])
        try pack("5.0.0-beta.1")
        _ = try publish("-q rel/test-5.0.0-beta.1.json --channel beta")
        #expect(try bases(of: "4.0.0") == ["1.0.0", "2.0.0", "3.0.0"])
        let said = try publish("--keep-releases 2")
        #expect(said.contains("- test-4.0.0.food.from-2.0.0.patch\n"), "\(said)")
        #expect(try bases(of: "4.0.0") == ["1.0.0", "3.0.0"])
        #expect(try bases(of: "5.0.0-beta.1") == ["3.0.0", "4.0.0"])
        #expect(try publish("--patches 0").contains("- test-4.0.0.food.from-3.0.0.patch\n"))
        #expect(try bases(of: "4.0.0") == [])
    }
}

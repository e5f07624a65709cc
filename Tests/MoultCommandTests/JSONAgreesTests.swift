import MoultBasics
import TestSupport
import Testing

/// The output with `--json` agrees with the text output, and names only files that exist.
@Suite struct JSONAgreesTests {
    private let world: VerbWorld
    init() throws {
        world = try VerbWorld()
        try world.must("moult keygen -q --no-password k; moult publish -q public rel/test-1.0.0.json -k k.key")
    }

    @Test func `apply --json has the fields of check if the feed has no newer release`() throws {
        try world.must("moult init -q --product org.example.test; moult apply -q --feed public/feed.json")
        try world.must("moult hold -q 2.0.0 --reason audit; moult publish -q public rel/test-2.0.0.json -k k.key")
        let feed = try #require(try world.json("moult apply --feed public/feed.json --json").last?["feed"])
        let check = try #require(try world.json("moult check --feed public/feed.json --json").last)
        for name in ["feed", "serial", "expires", "trust", "installed", "skipped", "holds"] {
            #expect(feed[name] != nil && feed[name] == check[name], "\(name)")
        }
    }

    @Test func `publish names every file that it writes`() throws {
        let report = try #require(try world.json("moult publish new rel/test-1.0.0.json -k k.key --json").last)
        let files = (report["files"]?.array ?? []).compactMap(\.string) + ["feed.json"]
        #expect(try world.must("ls new").split(separator: "\n").map(String.init) == files.sorted())
    }

    @Test func `export names every file that it writes`() throws {
        try world.must("moult init -q --product org.example.test --key k.pub --feed public")
        let report = try #require(try world.json("moult export 1.0.0 stick --json").last)
        let files = (report["files"]?.array ?? []).compactMap(\.string)
        #expect(try world.must("ls stick").split(separator: "\n").map(String.init) == files.sorted())
    }

    @Test func `the output does not contain paths of temporary files`() throws {
        try world.must(
            """
            sqlite3 food.db 'CREATE TABLE food(x)'; moult pack -q food.db --product org.example.food
            sqlite3 food.db 'INSERT INTO food VALUES(1)'
            """)
        let pack = try #require(try world.json("moult pack food.db --json").last)
        #expect(pack["changes"]?["diff"]?["new"]?["path"]?.string == "releases/food-1.1.0.json")
        for what in ["releases/food-1.1.0.json", "releases/food-1.1.0.tar.zst"] {
            let inspect = try #require(try world.json("moult inspect \(what) --json").last)
            #expect(inspect["databases"]?.array?.first?["here"]?.bool == true)
            #expect(inspect["databases"]?.array?.first?["path"] == nil)
        }
        let file = try #require(try world.json("moult inspect food.db --json").last)
        #expect(file["databases"]?.array?.first?["path"]?.string == "food.db")
    }

    @Test func `the path of a new store is absolute`() throws {
        let report = try #require(try world.json("moult init --product org.example.test --json").last)
        #expect(report["store"]?.string == world.store)
    }

    @Test func `sql prints infinity as a number and not as null`() throws {
        try world.install(world.first)
        #expect(try world.must("moult sql 'SELECT 1e999, -1e999' --json").contains("[[9e999,-9e999]]"))
    }

    @Test func `a restore is in the history, and the set that it created does not hide the restored set`() throws {
        try world.install(world.first)
        try world.must(
            """
            moult sql --write "INSERT INTO note VALUES('mine')"; moult reset -q user --set-user-data-aside
            moult quarantine -q --restore user
            """)
        // The set that the restore moved to quarantine has no rows, so `user` selects the first set again.
        #expect(try world.must("moult history --json").contains("\"action\":\"restore user\""))
        #expect(try world.must("moult sql 'SELECT text FROM note'") == "text\nmine\n")
        let sets = try #require(try world.json("moult quarantine --json").last?["quarantine"]?.array)
        #expect(sets.map { $0["rows"]?["note"]?.integer } == [1, nil], "\(sets)")
        let first = try #require(sets.first?["id"]?.string)
        #expect(
            try world.json("moult quarantine user --json").last?["quarantine"]?.array?.first?["id"]?.string == first)
    }
}

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
}

import MoultBasics
import MoultFiles
import MoultPublish
import TestSupport
import Testing

@Suite struct PackPreserveTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Packs a release of a shared database with this list of entries.
    private func pack(_ preserve: String) throws { try pack(field: ", \"preserve\": [\(preserve)]") }

    private func pack(field: String) throws {
        try Files.writeNew(
            Array(
                "CREATE TABLE item(name TEXT PRIMARY KEY, cents INT, edited INT); CREATE VIEW v AS SELECT 1 AS a;".utf8),
            to: scratch.path("make.sql"))
        let draft = """
            { "manifest": 1, "product": "org.example.shop", "version": "1.0.0", "sequence": 1, "databases": {
              "pantry": { "kind": "shared", "build": { "script": "make.sql" }\(field) } } }
            """
        try Files.writeNew(Array(draft.utf8), to: scratch.path("draft.json"))
        var options = PackOptions()
        options.output = scratch.path("out")
        options.environment = [:]
        _ = try Packer(options).pack(draft: scratch.path("draft.json"))
    }

    @Test func `preserve entries that match the database are packed`() throws {
        try pack(
            """
            { "table": "ITEM", "where": "edited = 1", "columns": { "price": "cents" } },
            { "table": "item", "where": "cents > 5", "columns": { "price": "cents" } }
            """)
        #expect(try Files.facts(scratch.path("out/shop-1.0.0.json")) != nil)
    }

    @Test func `a draft of a shared database says which rows survive, or that none do`() throws {
        let error = try #require(throws: MoultError.self) { try pack(field: "") }
        #expect(error.what.contains("databases.pantry.preserve is missing"), "\(error)")
        #expect(error.now?.description.contains(#""preserve": []"#) == true, "\(error)")
        #expect(try Files.facts(scratch.path("out/shop-1.0.0.json")) == nil)
        try scratch.must("rm draft.json make.sql")
        try pack("")
        // The next release that is packed without a draft takes the decision from this manifest.
        let sealed = try JSON(parsing: scratch.read("out/shop-1.0.0.json"), source: "m.json")
        #expect(sealed["databases"]?["pantry"]?["preserve"] == [])
    }

    @Test(arguments: [
        (#"{ "table": "itm" }"#, "preserve[0].table", #"Did you mean "item"?"#),
        (#"{ "table": "item" }, { "table": "v" }"#, "preserve[1].table", "ordinary tables"),
        (
            #"{ "table": "item", "columns": { "cents": "centz" } }"#, "preserve[0].columns.cents",
            #"Did you mean "cents"?"#
        ),
        (#"{ "table": "item", "where": "\"edtable\" = 1" }"#, "preserve[0].where", "no such column"),
        (#"{ "table": "item", "where": "editd = 1" }"#, "preserve[0].where", #"Did you mean "edited"?"#),
        (#"{ "table": "item", "where": "name > date('now')" }"#, "preserve[0].where", "'now'"),
        (
            #"{ "table": "item" }, { "table": "Item", "where": "edited", "onConflict": "fail" }"#,
            "preserve[1].onConflict", "preserve[0]"
        ),
        (
            #"{ "table": "item" }, { "table": "item", "where": "edited", "onReject": "table" }"#,
            "preserve[1].onReject", "preserve[0]"
        ),
    ])
    func `a preserve entry that does not match the database is refused, and the error names its place`(
        _ preserve: String, _ place: String, _ part: String
    ) throws {
        let error = try #require(throws: MoultError.self) { try pack(preserve) }
        #expect(error.outcome == .refused)
        #expect(error.what.contains("databases.pantry.\(place)"), "\(error)")
        #expect(error.description.contains(part), "\(error)")
        #expect(error.now != nil)
        #expect(try Files.facts(scratch.path("out/shop-1.0.0.json")) == nil)
    }
}

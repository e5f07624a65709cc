import MoultBasics
import StepKit
import Testing

@Suite struct ManifestReadingTests {
    @Test func `a sealed manifest is read with all its fields`() throws {
        let manifest = try Manifest(parsing: Array(SampleDocuments.sealedText.utf8), as: .sealed, source: "m.json")
        #expect(manifest.product == "org.example.dailyvalue")
        #expect(manifest.version == Version(2, 1, 0, prerelease: ["rc", "1"], build: ["5"]))
        #expect(manifest.sequence == 41)
        #expect(manifest.created?.description == "2026-11-20T10:00:00Z")
        #expect(manifest.expires?.description == "2027-11-20T10:00:00Z")
        #expect(manifest.critical == ["budget"])
        #expect(manifest.requires.from?.contains(Version(1, 9, 0)) == true)
        #expect(manifest.bundle?.size == 87_867_032)
        #expect(manifest.patches.map(\.from) == [Version(2, 0, 0)])
        #expect(manifest.databases.map(\.name) == ["food", "maps", "pantry", "user", "thumbs"])
        #expect(manifest.budget.first?.shrink == Allowance("20%"))
        #expect(manifest.steps.map(\.when) == [.after, .before])
        #expect(manifest.steps.map(\.phase) == [.copy, .verify])
        #expect(manifest.steps.map(\.with) == [["tables": ["food"]], [:]])
        #expect(manifest.warnings == [])

        let food = try #require(manifest.database("food"))
        #expect(food.kind == .reference && food.place == .generation && food.verify == .full)
        #expect(food.member == "food-2.db" && food.path == "food.db" && food.attach.alias == "shipped")
        #expect(food.identity.applicationID == -1 && food.identity.userVersion == 2)
        let pantry = try #require(manifest.database("pantry"))
        #expect(pantry.preserve.first?.columns == ["desc": "note", "group": "kind"])
        #expect(pantry.preserve.first?.onConflict == .fail && pantry.preserve.first?.onReject == .table)
        #expect(manifest.database("user")?.migrations.map(\.number) == [2, 10])
        #expect(manifest.database("thumbs")?.compatible?.userVersionAtMost == 3)
        #expect(manifest.database("maps")?.place == .inPlace)
    }

    @Test func `missing fields of a draft have default values`() throws {
        let text = """
            { "manifest": 1, "product": "org.example.app", "version": "1.0.0", "databases": { "food": { "kind": "cache" } } }
            """
        let manifest = try Manifest(parsing: Array(text.utf8), as: .draft, source: "m.json")
        let food = try #require(manifest.database("food"))
        #expect(manifest.sequence == 0 && manifest.bundle == nil && manifest.created == nil)
        #expect(food.member == "food.db" && food.path == "food.db" && food.attach.alias == "food")
        #expect(food.size == 0 && food.sha256 == "" && food.source == nil)
        #expect(food.verify == nil && food.compatible == nil)
        #expect(food.identity == Database.Identity())
    }

    @Test func `a draft names the source of each database`() throws {
        let manifest = try Manifest(parsing: Array(SampleDocuments.draftText.utf8), as: .draft, source: "m.json")
        #expect(manifest.database("maps")?.source == .file("resources/maps.db"))
        #expect(
            manifest.database("food")?.source
                == .script("food.sql", define: ["REVISION": "5"], analyze: true, from: "old/food.db"))
        #expect(manifest.database("user")?.migrations.map(\.size) == [0, 80])
    }

    @Test func `additional fields in a sealed manifest give a warning`() throws {
        let document = try SampleDocuments.sealed().edited([
            .set("/overlays", []), .set("/databases/food/tint", 1), .set("/checks/0/every", "day"),
            .set("/requires/glibc", "2"), .set("/databases/user/migrations/1/note", .null),
        ])
        let manifest = try Manifest(parsing: Array(document.line.utf8), as: .sealed, source: "m.json")
        let ignored = [
            "requires.glibc", "databases.food.tint", "databases.user.migrations[1].note", "checks[0].every", "overlays",
        ]
        #expect(
            manifest.warnings == ignored.map { "m.json: \($0) is not known to this version of moult and was ignored" })
        // Everything else is unchanged.
        var same = manifest
        same.warnings = []
        #expect(try same == Manifest(parsing: Array(SampleDocuments.sealedText.utf8), as: .sealed, source: "m.json"))
    }

    @Test func `only the first unknown fields have a warning of their own`() throws {
        let fields = (0..<30).map { Edit.set("/more\($0)", 1) }
        func warnings(_ count: Int) throws -> [String] {
            let text = try SampleDocuments.sealed().edited(Array(fields.prefix(count))).line
            return try Manifest(parsing: Array(text.utf8), as: .sealed, source: "m.json").warnings
        }
        #expect(try warnings(20).count == 20)
        #expect(try warnings(21).last == "m.json: 1 other field that this version of moult does not know was ignored")
        #expect(
            try warnings(30).last == "m.json: 10 other fields that this version of moult does not know were ignored")
    }

    /// Readers compare each of these items with many others.
    @Test func `the numbers of critical fields, patches and alternatives are limited`() throws {
        func refusal(_ edit: Edit) throws -> String? {
            let text = try SampleDocuments.sealed().edited([edit]).line
            return try #require(throws: MoultError.self) {
                try Manifest(parsing: Array(text.utf8), as: .sealed, source: "m")
            }.what
        }
        let names = (0..<101).map { JSON.string("n\($0)") }
        #expect(try refusal(.set("/critical", .array(names))) == "m: critical must have at most 100 names, but has 101")
        #expect(
            try refusal(.set("/critical", [.string(String(repeating: "n", count: 257))]))
                == "m: critical[0] is longer than 256 characters")
        let patch = try #require(SampleDocuments.sealed()["patches"]?.array?.first)
        #expect(
            try refusal(.set("/patches", .array(Array(repeating: patch, count: 257))))
                == "m: patches must have at most 256 patches, but has 257")
        for name in ["app", "moult", "from"] {
            let range = Array(repeating: "1.2.3", count: 20_000).joined(separator: "||")
            #expect(
                try refusal(.set("/requires/\(name)", .string(range)))
                    == "m: requires.\(name) is longer than 1024 characters")
        }
    }

    @Test func `a critical field that is known or absent is accepted`() throws {
        let document = try SampleDocuments.sealed().edited([
            .set("/critical", ["budget", "overlays"]), .set("/databases/food/tint", 1),
        ])
        let manifest = try Manifest(parsing: Array(document.line.utf8), as: .sealed, source: "m.json")
        #expect(manifest.critical == ["budget", "overlays"])
    }

    @Test func `the first user database is the main database by default`() {
        let text = """
            { "manifest": 1, "product": "org.example.app", "version": "1.0.0", "databases": {
                "main": { "kind": "user" }, "food": { "kind": "reference", "attach": { "as": "user" } } } }
            """
        #expect(refusal(Array(text.utf8), as: .draft) == nil)
    }

    @Test func `a manifest without packed databases needs no bundle`() throws {
        let edits = ["food", "pantry", "user", "thumbs"].map { Edit.remove("/databases/\($0)") }
        let document = try SampleDocuments.sealed().edited(
            edits + [.remove("/bundle"), .remove("/patches"), .remove("/checks"), .remove("/budget")])
        #expect(refusal(document, as: .sealed) == nil)
    }
}

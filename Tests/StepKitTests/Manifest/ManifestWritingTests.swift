import MoultBasics
import StepKit
import Testing

@Suite struct ManifestWritingTests {
    /// The sample has every field in the order in which fields are written, so this shows that no field is lost or
    /// moved.
    @Test func `the fields of a manifest are written in order`() throws {
        let manifest = try Manifest(parsing: Array(SampleDocuments.sealedText.utf8), as: .sealed, source: "m.json")
        // A field without effect is not written.
        let expected = try SampleDocuments.sealed().edited([.remove("/databases/pantry/replace")])
        #expect(manifest.sealedJSON().pretty == expected.pretty)
    }

    @Test func `a written manifest is read back unchanged`() throws {
        let manifest = try Manifest(parsing: Array(SampleDocuments.sealedText.utf8), as: .sealed, source: "m.json")
        let bytes = Array(manifest.sealedJSON().pretty.utf8)
        #expect(try Manifest(parsing: bytes, as: .sealed, source: "m.json") == manifest)
    }

    @Test func `default values are not written`() throws {
        let text = """
            {
              "manifest": 1,
              "product": "org.example.app",
              "version": "1.0.0",
              "sequence": 0,
              "databases": {
                "maps": {
                  "kind": "reference",
                  "member": "maps.db",
                  "size": 4096,
                  "sha256": "\(SampleDocuments.digest)",
                  "place": "in-place"
                }
              }
            }

            """
        let manifest = try Manifest(parsing: Array(text.utf8), as: .sealed, source: "m.json")
        #expect(manifest.sealedJSON().pretty == text)
    }

    /// A manifest with explicit default values is equal to one without them.
    @Test func `explicit default values are equal to missing fields`() throws {
        let edits: [Edit] = [
            .set("/requires", [:]), .set("/patches", []), .set("/checks", []), .set("/budget", [:]), .set("/steps", []),
            .set("/critical", []), .set("/databases/food/path", "food-2.db"),
            .set("/databases/food/attach", ["as": "food"]), .set("/databases/food/place", "generation"),
            .set("/databases/food/identity", [:]),
            .set("/databases/pantry/preserve", [["table": "food", "onConflict": "keep-user", "onReject": "block"]]),
            .set("/databases/user/migrations", []),
        ]
        let explicit = try SampleDocuments.sealed().edited(edits)
        let manifest = try Manifest(parsing: Array(explicit.line.utf8), as: .sealed, source: "m.json")
        let written = manifest.sealedJSON()
        for edit in edits where !edit.path.hasSuffix("/preserve") { #expect(written.at(edit.path) == nil, "\(edit)") }
        #expect(written.at("/databases/pantry/preserve") == [["table": "food"]])
        #expect(try Manifest(parsing: Array(written.line.utf8), as: .sealed, source: "m.json") == manifest)
    }

    /// As in `pack`, a draft gets sizes and digests, and loses the fields that only drafts have.
    @Test func `a draft becomes a sealed manifest`() throws {
        var manifest = try Manifest(parsing: Array(SampleDocuments.draftText.utf8), as: .draft, source: "m.json")
        for index in manifest.databases.indices {
            manifest.databases[index].size = 4096
            manifest.databases[index].sha256 = SampleDocuments.digest
            for migration in manifest.databases[index].migrations.indices {
                manifest.databases[index].migrations[migration].size = 12
                manifest.databases[index].migrations[migration].sha256 = SampleDocuments.other
            }
        }
        manifest.bundle = Manifest.Bundle(file: "b.tar.zst", size: 5, sha256: SampleDocuments.other)
        let written = manifest.sealedJSON()
        for name in ["$schema", "source", "build"] { #expect(!written.paths.contains { $0.hasSuffix("/\(name)") }) }
        let sealed = try Manifest(parsing: Array(written.line.utf8), as: .sealed, source: "m.json")
        for index in manifest.databases.indices { manifest.databases[index].source = nil }
        #expect(sealed == manifest)
        #expect(sealed.warnings == [])
    }

    /// Texts with a meaning in SQL or JSON are read back unchanged.
    @Test func `unusual texts are read back unchanged`() throws {
        let strange = "a \"b\" \\ \n \u{1} é 😀 ' ; --"
        let document = try SampleDocuments.sealed().edited([
            .set("/budget", [:]), .set("/checks/0/sql", .string(strange)), .set("/checks/0/expect", .string(strange)),
            .set("/databases/pantry/preserve/0/table", .string(strange)),
            .set("/databases/pantry/preserve/0/columns", .object([JSON.Member(strange, .string(strange))])),
            .set("/budget", .object([JSON.Member("food.\(strange)", ["shrink": "0.5%"])])),
        ])
        let manifest = try Manifest(parsing: Array(document.line.utf8), as: .sealed, source: "m.json")
        #expect(manifest.budget.first?.table == strange)
        #expect(manifest.checks.first?.sql == strange)
        #expect(manifest.sealedJSON() == document.edited([.remove("/databases/pantry/replace")]))
    }
}
